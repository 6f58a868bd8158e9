# One image for every process of the service. With EXTRAS=postgres,s3,wan it renders with Wan too.
FROM python:3.11-slim-bookworm AS build
ARG EXTRAS=postgres,s3
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/cliploop/bin:$PATH
RUN python -m venv /opt/cliploop
WORKDIR /src
# The libraries first: they change less often than the code.
COPY pyproject.toml constraints.txt ./
RUN python -c 'import sys, tomllib; \
project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
extras = project["optional-dependencies"]; \
print(*project["dependencies"], *(line for name in sys.argv[1].split(",") for line in extras[name]), sep="\n")' \
    "$EXTRAS" > libraries.txt \
 && pip install -c constraints.txt -r libraries.txt
COPY . .
RUN pip install -c constraints.txt --no-deps .

FROM python:3.11-slim-bookworm
ENV PATH=/opt/cliploop/bin:$PATH PYTHONUNBUFFERED=1 CLIPLOOP_DATA=/data HF_HOME=/models
RUN groupadd --gid 10001 cliploop \
 && useradd --uid 10001 --gid 10001 --create-home cliploop \
 && install -d -o cliploop -g cliploop /data /models
COPY --from=build /opt/cliploop /opt/cliploop
USER 10001:10001
WORKDIR /home/cliploop
EXPOSE 8000
CMD ["cliploop", "--help"]

# Superstep on Debian 12, for any x86-64 or ARM processor: built in one image, run from a smaller one.
#   docker build -t superstep .
#   docker run --rm -v "$PWD":/work superstep train braggnn --samples 2000 --epochs 2 --out run
FROM debian:12 AS build
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY tools/setup tools/setup
RUN tools/setup && rm -rf /var/lib/apt/lists/*
COPY . .
# The package names the libraries that it needs, so the second image installs those and no headers.
RUN make package && mkdir /packages && cp build/*.deb /packages/

FROM debian:12
ENV DEBIAN_FRONTEND=noninteractive
COPY --from=build /packages /packages
RUN apt-get update && apt-get install -y --no-install-recommends /packages/*.deb && rm -rf /packages /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 scientist && mkdir /work && chown scientist /work
USER scientist
WORKDIR /work
ENTRYPOINT ["superstep"]
CMD ["--help"]

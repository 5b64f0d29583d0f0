# syntax=docker/dockerfile:1
# An image of cowboyctl, built from this checkout: docker build -t cowboyctl .
#
#   docker run --rm cowboyctl                               boots a devnet, runs a job on it, stops
#   docker run --init -d --name devnet cowboyctl devnet up  a devnet that runs until docker stop devnet
#   docker exec devnet cowboyctl devnet status              commands for it
#
# The control API and everything else listen on the loopback of the container, so publishing ports (-p) reaches
# nothing: run commands inside with docker exec, other programs with --network container:devnet.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# Cargo's downloads and build output stay with the builder; one target folder for each architecture.
ARG TARGETARCH
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,id=cowboyctl-target-${TARGETARCH},target=/src/target,sharing=locked \
    cargo build --locked --release -p cowboyctl \
    && strip -o /usr/local/bin/cowboyctl target/release/cowboyctl

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="cowboyctl" \
      org.opencontainers.image.description="A local devnet of the Cowboy chain, and the tools to look into it" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
# Jobs with HTTPS requests need the system's root certificates. Versions are those of the Debian release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /var/lib/cowboyctl --no-create-home cowboyctl \
    && install -d -o cowboyctl -g cowboyctl -m 0750 /var/lib/cowboyctl
COPY LICENSE /usr/share/doc/cowboyctl/copyright
COPY --from=build /usr/local/bin/cowboyctl /usr/local/bin/
USER 10001
ENV COWBOYCTL_HOME=/var/lib/cowboyctl
WORKDIR /var/lib/cowboyctl
# After its owner is set, because later changes to a volume's folder are lost.
VOLUME /var/lib/cowboyctl
# On SIGTERM `devnet up` shuts down cleanly and ends with 0; on SIGINT it would end with 130.
STOPSIGNAL SIGTERM
ENTRYPOINT ["cowboyctl"]
# Without --down, the devnet's process would be killed when its starting command, process 1, ends.
CMD ["quickstart", "--down"]

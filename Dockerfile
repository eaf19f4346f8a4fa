# An edge of Touchdown on Node 24 and Debian 13. The configuration and the keys come in as a volume, the
# journal of keys stays in another one:
#
#   docker build -t touchdown .
#   docker run --detach --name touchdown-edge --init --restart always --network host \
#     --read-only --cap-drop ALL --security-opt no-new-privileges \
#     --ulimit nofile=1048576 --stop-timeout 150 \
#     -v /etc/touchdown:/etc/touchdown:ro -v touchdown:/var/lib/touchdown touchdown
#
# docs/operations.md, "Docker", explains the options.
#
# The base images are pinned by digest: a build takes the same bytes next month. What a tag means today
# says `docker buildx imagetools inspect node:24-trixie-slim`; `--build-arg NODE=...` takes another.
ARG RUST=rust:1.95.0-slim-trixie@sha256:e14e87345b4d5964ddcc3491d27ee046a0f23820f340c3c1e24da6880141f7c0
ARG NODE=node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe

# The native engine, against the C library of the image that runs it.
FROM ${RUST} AS native
WORKDIR /app/native
COPY native ./
RUN cargo build --release --locked && cp target/release/libtouchdown_native.so touchdown.node

FROM ${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/copy-pages.mjs scripts/
COPY src src
RUN npm run build:ts && npm prune --omit=dev

FROM ${NODE}
# The second keeps glibc from raising the size from which it gives freed memory back.
ENV NODE_ENV=production MALLOC_MMAP_THRESHOLD_=131072
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=native /app/native/touchdown.node native/
COPY LICENSE NOTICE THIRD_PARTY_NOTICES README.md ./
# For accounts.journal, or the vault file of `control`: a volume there belongs to the user, as the folder.
RUN install --directory --owner=node --group=node --mode=0700 /var/lib/touchdown
USER node
# What clients reach over HTTP and, with quic.listen, over QUIC, and the operator's own listener.
EXPOSE 8080/tcp 8009/udp 9090/tcp
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "dist/main.js", "ready", "--config", "/etc/touchdown/touchdown.toml", "--timeout", "3s"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "--max-semi-space-size=8", "dist/main.js"]
CMD ["edge", "--config", "/etc/touchdown/touchdown.toml"]

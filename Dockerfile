# docker build -t eqlearn . ; docker run --rm -v "$PWD:/data" eqlearn fit table.csv --target y
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
# The processor's build of torch is a tenth of the one for graphics cards.
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
        -c /tmp/constraints.txt "$(ls /wheels/*.whl)[units,parquet]" \
    && rm -rf /wheels /tmp/constraints.txt \
    && useradd --create-home scientist
USER scientist
WORKDIR /data
ENV OMP_NUM_THREADS=1
ENTRYPOINT ["eqlearn"]
CMD ["--help"]

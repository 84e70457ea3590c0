/** Options of traces: variables of OpenTelemetry, with the defaults of its SDKs. */
import { choice, headerList, option, optional, ratio, serviceUrl, text } from '#lib/option-types.ts'
import { samplers } from '#lib/tracing/sampler.ts'

export const tracesOptions = {
  tracesEndpoint: option(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    '',
    optional(serviceUrl),
    'URL of a receiver of OpenTelemetry, such as `http://127.0.0.1:4318`: nodes send traces of requests and of the delivery of their records to `/v1/traces` there, as JSON over HTTP; empty: no traces',
  ),
  tracesHeaders: option(
    'OTEL_EXPORTER_OTLP_HEADERS',
    '',
    headerList,
    'headers for that receiver, as in `authorization=Bearer%20secret`',
  ),
  tracesSampler: option(
    'OTEL_TRACES_SAMPLER',
    'parentbased_always_on',
    choice(samplers),
    'which requests are traced, at most 200 in a second: `parentbased_…` leaves it to a sender whose request has a `traceparent`, and otherwise applies the rest of the name: `always_on`, `always_off`, or `traceidratio` for the share in OTEL_TRACES_SAMPLER_ARG',
  ),
  tracesRatio: option('OTEL_TRACES_SAMPLER_ARG', '1', ratio, 'the share of requests that `traceidratio` traces, 0 to 1'),
  tracesServiceName: option('OTEL_SERVICE_NAME', 'inlet', text, '`service.name` of the spans'),
} as const

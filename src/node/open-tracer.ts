import type { System } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Tracer, TracerOptions } from '#lib/tracing/tracer.ts'
import { readVersion } from '#lib/version.ts'
import type { TraceLinks } from './trace-links.ts'

/** The part of the configuration that is about traces. */
export type TracesConfig = {
  readonly tracesEndpoint: string | null
  readonly tracesHeaders: Readonly<Record<string, string>>
  readonly tracesSampler: TracerOptions['sampler']
  readonly tracesRatio: number
  readonly tracesServiceName: string
  readonly paths: { readonly traceLinks: string }
}

export type OpenedTracer = { readonly tracer: Tracer; readonly links: TraceLinks }

/** Returns undefined, and loads nothing, if there are no traces. */
export async function openTracer(
  config: TracesConfig,
  process: System & { readonly process: string; readonly nodeId: string; readonly logger: Logger },
): Promise<OpenedTracer | undefined> {
  const { tracesEndpoint: url, tracesHeaders: headers, tracesSampler: sampler, tracesRatio: ratio } = config
  if (url === null) return undefined
  const [{ Tracer }, { TraceLinks }] = await Promise.all([import('#lib/tracing/tracer.ts'), import('./trace-links.ts')])
  const links = new TraceLinks(config.paths.traceLinks, process.files)
  await links.prepare(process.clock.now())
  const options = { url, headers, sampler, ratio, serviceName: config.tracesServiceName, version: await readVersion() }
  return { tracer: new Tracer({ ...options, ...process }), links }
}

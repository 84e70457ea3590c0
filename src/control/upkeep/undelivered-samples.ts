/** Samples what nodes hold of each endpoint and no commit has yet, for the series of the endpoint. */
import { Periodic } from '#lib/periodic.ts'
import { listUndeliveredBytes } from '#store/nodes/lag-totals.ts'
import { addUndeliveredToSeries } from '#store/series/endpoint-series.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type UndeliveredSamplesOptions = Pick<ControlContext, 'store' | 'leadership' | 'clock' | 'logger'>

export function createUndeliveredSamples(options: UndeliveredSamplesOptions): Periodic {
  const { leadership, clock, logger } = options
  return new Periodic({
    name: 'undelivered samples',
    intervalMs: controlLimits.undeliveredSampleMs,
    run: leadership.whileLeading((signal) => sampleUndelivered(options, signal)),
    failure: 'sample of undelivered bytes failed',
    recovery: 'samples of undelivered bytes restored',
    clock,
    logger,
  })
}

export async function sampleUndelivered(
  { store, clock }: Pick<UndeliveredSamplesOptions, 'store' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined && !signal.aborted; ) {
    const samples = await listUndeliveredBytes(store.db, after, controlLimits.undeliveredEndpointsAtOnce)
    if (samples.length > 0) await transact(store, (db) => addUndeliveredToSeries(db, samples, clock.now()))
    after = samples.length < controlLimits.undeliveredEndpointsAtOnce ? undefined : samples.at(-1)?.endpoint_id
  }
}

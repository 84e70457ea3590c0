/**
 * A process that runs previews, one at a time, for the process that started it.
 *
 * DuckDB heeds an interrupt between batches of rows, not within one: a regular expression on a few large samples can run for a
 * minute. Only a process can be ended whatever it does.
 */
import { setPriority } from 'node:os'
import { AppError } from '#errors.ts'
import { systemClock } from '#lib/clock.ts'
import { samplesOfParquet } from './parquet-samples.ts'
import { previewView } from './preview.ts'
import type { PreviewAnswer, PreviewTask } from './preview-protocol.ts'
import { suggestView } from './suggest.ts'

/** Others on the machine go first. */
const niceness = 10

setPriority(niceness)
// The one who started it ends it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
// An exit would wait for DuckDB.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.on('message', async (task: PreviewTask) => process.send?.(await answer(task)))

async function answer({ request, timeoutMs }: PreviewTask): Promise<PreviewAnswer> {
  try {
    const options = { clock: systemClock, timeoutMs }
    if ('preview' in request) return { result: await previewView(request.preview, options) }
    const { suggest } = request
    const samples = 'samples' in suggest ? suggest.samples : await samplesOfParquet(suggest.parquet)
    return { suggestion: await suggestView(samples, options) }
  } catch (error) {
    if (error instanceof AppError) return { refused: { message: error.message, errors: error.errors ?? [] } }
    return { crashed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

/**
 * A process that runs previews, one at a time, for its parent process.
 *
 * DuckDB handles an interrupt between batches of rows, not within one: a regular expression on a few large samples can run for a
 * minute. Only a process can be killed at any time.
 */
import { AppError } from '#errors.ts'
import { systemClock } from '#lib/clock.ts'
import { serveTasks } from '#lib/serve-tasks.ts'
import { samplesOfParquet } from './parquet-samples.ts'
import { previewView } from './preview.ts'
import type { PreviewReply, PreviewTask } from './preview-protocol.ts'
import { suggestView } from './suggest.ts'

/** Other processes on the machine have priority. */
const niceness = 10

serveTasks(reply, { niceness })

async function reply({ request, timeoutMs }: PreviewTask): Promise<PreviewReply> {
  try {
    const options = { clock: systemClock, timeoutMs }
    if ('preview' in request) return { result: await previewView(request.preview, options) }
    const { suggest } = request
    const samples = 'samples' in suggest ? suggest.samples : await samplesOfParquet(suggest.parquet)
    return { suggestion: await suggestView(samples, options) }
  } catch (error) {
    if (error instanceof AppError) return { rejected: { message: error.message, errors: error.errors ?? [] } }
    return { crashed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

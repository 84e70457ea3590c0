/** A process that sends HTTP requests by a schedule: receives the schedule as a message and sends what it measured as a message. */
import { prepare } from './http-ingest-load.ts'
import { type OpenLoop, type OpenLoopOutcome, runOpenLoop } from './open-loop.ts'

export type LatencyJob = Omit<OpenLoop, 'request'> & { readonly events: number; readonly eventBytes: number }
export type LatencyMessage = OpenLoopOutcome

process.on('message', async (job: LatencyJob) => {
  process.send?.((await runOpenLoop({ ...job, request: prepare(job) })) satisfies LatencyMessage)
})

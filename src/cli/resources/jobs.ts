/** Starts jobs and follows what nodes make of them, for `--wait`. */
import { setTimeout } from 'node:timers/promises'
import type { Client } from '#client/client.ts'
import type { Schemas } from '#client/generated/schema.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { Progress } from '../terminal/progress.ts'

type Job = Schemas['Job']

const pollMs = 500

/** Starts one job after the other until there is nothing left to do. The exit code is 1 if a part of one failed. */
export async function runJobs(
  context: CliContext,
  client: Client,
  { json }: JsonFlags,
  start: () => PromiseLike<Job | undefined>,
): Promise<void> {
  // With --json, standard output has only the result.
  const output = json ? context.process.stderr : context.process.stdout
  let failed = 0
  let made = 0
  for (let started = await start(); started !== undefined; started = await start()) {
    const { total } = started.segments
    output.write(`job ${started.id}: ${total} files\n`)
    const { segments, last_error, status } = await follow(client, started, new Progress({ output, label: 'merging', total }))
    made += segments.done
    failed = segments.failed
    if (last_error !== null) output.write(`  ${last_error}\n`)
    // A failed merge would be planned again at once.
    if (status !== 'succeeded') break
  }
  const text = made === 0 && failed === 0 ? 'nothing to merge\n' : `${made} done, ${failed} failed\n`
  printResult(context, { json }, { done: made, failed }, text)
  if (failed > 0) context.process.exitCode = 1
}

async function follow(client: Client, { id }: Job, progress: Progress): Promise<Job> {
  for (;;) {
    const job = await client.getJob(id)
    const { total, done, skipped, failed } = job.segments
    progress.show(done + skipped + failed, `${done + skipped + failed} of ${total}`)
    if (job.finished_at !== null) return job
    await setTimeout(pollMs)
  }
}

/** `inlet compact`: plans compactions in the database, and follows what nodes make of them. */
import { setTimeout } from 'node:timers/promises'
import { UserError } from '#lib/user-error.ts'
import { Compact } from '#model/compaction.ts'
import { summarize } from '#model/field-errors.ts'
import type { Job } from '#model/job.ts'
import { startCompaction } from '#store/compaction-jobs.ts'
import { findAccountOfEndpoint } from '#store/endpoints.ts'
import { getJob } from '#store/jobs.ts'
import type { Store } from '#store/store.ts'
import { audited } from './audited.ts'
import { type CliContext, UsageError } from './context.ts'
import { type JsonFlags, printResult } from './print-json.ts'
import { Progress } from './progress.ts'
import { openCommandStore } from './store.ts'

export type CompactFlags = JsonFlags & {
  readonly endpoint: string
  readonly period: 'hour' | 'day'
  readonly from?: string
  readonly to?: string
}

const pollMs = 500

export async function compactEndpoint(this: CliContext, { endpoint, json, ...request }: CompactFlags): Promise<void> {
  const parsed = Compact.safeParse(request)
  if (!parsed.success)
    throw new UsageError(summarize(parsed.error.issues.map(({ path, message }) => ({ path: `--${path.join('.')}`, message }))))
  await using store = await openCommandStore(this)
  const account_id = await findAccountOfEndpoint(store.db, endpoint)
  if (account_id === undefined) throw new UserError(`there is no endpoint ${endpoint}`)
  // With --json, standard output has only the result.
  const output = json ? this.process.stderr : this.process.stdout
  const what = { operation: 'compactEndpoint', account_id, resource_id: endpoint }
  let failed = 0
  let made = 0
  // A job covers a bounded number of commits.
  for (;;) {
    const planned = await audited(store, this.clock, what, () =>
      startCompaction(store, { account_id, created_by: 'cli' }, endpoint, parsed.data, this.clock.now()),
    )
    if (planned === undefined) break
    output.write(`job ${planned.id}: ${planned.segments.total} files\n`)
    const { segments, last_error, status } = await follow(
      store,
      account_id,
      planned,
      new Progress({ output, label: 'merging', total: planned.segments.total }),
    )
    made += segments.done
    failed = segments.failed
    if (last_error !== null) output.write(`  ${last_error}\n`)
    // A failed merge would be planned again at once.
    if (status !== 'succeeded') break
  }
  const text = made === 0 && failed === 0 ? 'nothing to merge\n' : `${made} done, ${failed} failed\n`
  printResult(this, { json }, { done: made, failed }, text)
  if (failed > 0) this.process.exitCode = 1
}

async function follow(store: Store, account_id: string, { id }: Job, progress: Progress): Promise<Job> {
  for (;;) {
    const job = await getJob(store.db, account_id, id)
    const { total, done, skipped, failed } = job.segments
    progress.show(done + skipped + failed, `${done + skipped + failed} of ${total}`)
    if (job.finished_at !== null) return job
    await setTimeout(pollMs)
  }
}

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import type { ConvertReply, ConvertTask, NamedFile, SegmentTask, Step } from '#delivery/convert/worker/protocol.ts'
import type { TaskEnd, TaskOptions } from '#lib/process-pool.ts'

export type RunningTask = {
  readonly task: SegmentTask
  readonly report: (step: Step) => void
  readonly end: (end: TaskEnd<ConvertReply>) => void
  /** Replies with raw Parquet and a file for each view. */
  readonly succeed: () => Promise<void>
}

/** Conversion processes whose tasks do nothing, and end as a test says. */
export class ScriptedConversions implements ConversionPool {
  readonly pids: readonly number[] = []
  /** In the order of their starts. */
  readonly running: RunningTask[] = []
  /** How many tasks of segments have started. */
  started = 0
  /** How a probe ends. */
  probe: TaskEnd<ConvertReply> = { reply: { files: [], views: [], failed: [] } }

  async run(task: ConvertTask, { onReport, signal }: TaskOptions<Step>): Promise<TaskEnd<ConvertReply>> {
    signal.throwIfAborted()
    if (task.kind !== 'segment') return this.probe
    const { promise, resolve, reject } = Promise.withResolvers<TaskEnd<ConvertReply>>()
    const running: RunningTask = {
      task,
      report: (step) => void onReport?.(step),
      end: resolve,
      async succeed() {
        try {
          resolve({ reply: { files: await filesOf(task), views: [], failed: [] } })
        } catch (error) {
          // The directory of a task goes once the task is aborted.
          if (!signal.aborted) throw error
        }
      },
    }
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.running.push(running)
    this.started += 1
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.running.splice(this.running.indexOf(running), 1)
    }
  }

  async stop(): Promise<void> {}
}

async function filesOf({ directory, views }: SegmentTask): Promise<readonly NamedFile[]> {
  const described = { bytes: 1, rows: 1, sha256: '' }
  const files: readonly NamedFile[] = [
    { kind: { type: 'parquet' }, name: 'records.parquet', ...described },
    ...views.map(({ name, version }) => ({
      kind: { type: 'view', name, version } as const,
      name: `${name}.parquet`,
      ...described,
    })),
  ]
  for (const { name } of files) await writeFile(join(directory, name), '')
  return files
}

/** Conversion that is exact and takes simulated time: a file with one line for each record, and files of views, also for units of jobs. It fails, ends or hangs as it is told. */
import { join } from 'node:path'
import { kindOf } from '#delivery/convert/build/unit-names.ts'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import type {
  ConvertReply,
  ConvertTask,
  MergeTask,
  NamedFile,
  SegmentTask,
  Step,
  UnitTask,
} from '#delivery/convert/worker/protocol.ts'
import { createFile, type Files } from '#lib/files.ts'
import type { TaskEnd, TaskOptions } from '#lib/process-pool.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { ArtifactKind, ViewVersion } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { digest } from './bucket.ts'
import type { Delays, Life } from './kernel.ts'
import { countsOf, decidedAs } from './view-rows.ts'

export type ConversionFault = 'exits' | 'hangs' | 'fails'

const bufferBytes = 64 * 1024
const emptyReply: ConvertReply = { files: [], views: [], failed: [] }

export class SimulatedConversions implements ConversionPool {
  readonly pids: readonly number[] = []
  readonly #life: Life
  readonly #files: Files
  readonly #delays: Delays
  readonly #fault: () => ConversionFault | undefined

  constructor(life: Life, files: Files, delays: Delays, fault: () => ConversionFault | undefined) {
    this.#life = life
    this.#files = files
    this.#delays = delays
    this.#fault = fault
  }

  async run(task: ConvertTask, { timeoutMs, signal, onReport }: TaskOptions<Step>): Promise<TaskEnd<ConvertReply>> {
    signal.throwIfAborted()
    const fault = this.#fault()
    await this.#life.call(`convert ${task.kind}`, this.#delays, () => undefined)
    signal.throwIfAborted()
    if (fault === 'exits') return { exited: 'killed by SIGKILL' }
    const limitMs = onReport?.({ views: [] }) ?? timeoutMs
    if (fault === 'hangs') {
      await new Promise<void>((resolve) => this.#life.after(limitMs, 'conversion timed out', resolve))
      return { timedOut: true }
    }
    if (fault === 'fails') return { reply: { failure: { kind: 'fault', message: 'simulated' } } }
    if (task.kind === 'merge') return { reply: await this.#merge(task) }
    if (task.kind === 'unit') return { reply: await this.#apply(task) }
    return { reply: task.kind === 'segment' ? await this.#convert(task) : emptyReply }
  }

  async stop(): Promise<void> {}

  async #convert({ source, segment, directory, views }: SegmentTask): Promise<ConvertReply> {
    const segments = new LocalSegmentSource({ directory: source, files: this.#files, clock: this.#life.clock })
    const lines: string[] = []
    try {
      const reader = await segments.open(segment)
      for await (const frames of reader.frames(bufferBytes))
        for (const { payload } of frames) lines.push(Buffer.from(payload).toString())
      await reader.close()
    } catch (error) {
      if (!(error instanceof SegmentError)) throw error
      const { path, problem, offset, message } = error
      return { failure: { kind: 'segment', path, problem, offset, message } }
    }
    const records = linesOf(lines.join('\n'))
    const files = [await this.#write(directory, { kind: { type: 'parquet' }, name: 'records.parquet' }, records)]
    const toBuild = views.map(({ view_id: id, name, version }) => ({ id, name, version }))
    for (const view of toBuild) files.push(...(await this.#writeView(directory, view, records)))
    return { files, views: toBuild.map((view) => outcomeOf(view, records)), failed: [] }
  }

  /** A backfill or a re-drive. */
  async #apply({ unit, sourcePath, directory }: UnitTask): Promise<ConvertReply> {
    const { view, source } = unit
    const found = linesOf((await this.#files.read(sourcePath))?.toString() ?? '')
    const records =
      source.first_row === undefined ? found : found.slice(source.first_row, source.first_row + source.artifact.rows)
    if (records.length !== source.artifact.rows)
      return { failure: { kind: 'fault', message: `${sourcePath} has ${records.length} rows` } }
    const files = await this.#writeView(directory, view, records)
    const own = files.map((file) => ({ ...file, kind: kindOf(unit, file.kind) }))
    return { files: own, views: [outcomeOf(view, records)], failed: [] }
  }

  async #writeView(directory: string, { id, ...view }: View, records: readonly string[]): Promise<readonly NamedFile[]> {
    const { name, version } = view
    const files: NamedFile[] = []
    for (const [type, rows] of [
      ['view', decidedAs('accepted', view, records)],
      ['dlq', decidedAs('dlq', view, records)],
    ] as const)
      if (rows.length > 0) {
        const file = await this.#write(directory, { kind: { type, name, version }, name: `${name}-v${version}.${type}` }, rows)
        files.push({ ...file, view: { id, version } })
      }
    return files
  }

  async #merge({ sources, of: kind, directory }: MergeTask): Promise<ConvertReply> {
    const lines: string[] = []
    for (const { path, rows } of sources) {
      const found = linesOf((await this.#files.read(path))?.toString() ?? '')
      if (found.length !== rows) return { failure: { kind: 'fault', message: `${path} has ${found.length} rows, not ${rows}` } }
      lines.push(...found)
    }
    return { files: [await this.#write(directory, { kind, name: 'merged.parquet' }, lines)], views: [], failed: [] }
  }

  async #write(
    directory: string,
    file: { readonly kind: ArtifactKind; readonly name: string },
    lines: readonly string[],
  ): Promise<NamedFile> {
    const body = Buffer.from(lines.join('\n'))
    await createFile(this.#files, join(directory, file.name), body)
    return { ...file, bytes: body.length, rows: lines.length, sha256: digest(body) }
  }
}

type View = ViewVersion & { readonly id: string }

function outcomeOf(view: View, records: readonly string[]): ViewOutcome {
  const { id: view_id, name: view_name, version: view_version } = view
  const counts = countsOf(view, records)
  const errors = counts.dlq > 0 ? { simulated: counts.dlq } : {}
  return { view_id, view_name, view_version, ...counts, failed: 0, cast_nulls: 0, errors, last_error: null }
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split('\n')
}

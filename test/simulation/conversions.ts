/** Conversion that is exact and takes simulated time: a file with one line for each record, and files of views, also for units of jobs. It fails, ends or hangs as it is told. */
import { join } from 'node:path'
import { kindOf } from '#delivery/convert/build/unit-names.ts'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import type {
  ConvertReply,
  ConvertTask,
  KeyAnswer,
  KeyQuestion,
  KeysTask,
  MergeTask,
  NamedFile,
  NamedKeys,
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
import { keyBytes } from '#records/key-hashes.ts'
import { digest } from './bucket.ts'
import type { Delays, Life } from './kernel.ts'
import { countsOf, decidedAs, firstOfKeys, keyOf } from './view-rows.ts'

export type ConversionFault = 'exits' | 'hangs' | 'fails'

const bufferBytes = 64 * 1024
const emptyReply: ConvertReply = { files: [], views: [], failed: [] }

type Ask = (question: KeyQuestion) => Promise<KeyAnswer>

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

  async run(task: ConvertTask, { timeoutMs, signal, onReport, onQuestion }: TaskOptions<Step>): Promise<TaskEnd<ConvertReply>> {
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
    if (task.kind === 'keys') return { reply: await this.#readKeys(task) }
    if (task.kind !== 'segment') return { reply: emptyReply }
    return { reply: await this.#convert(task, async (question) => (await onQuestion?.(question)) as KeyAnswer) }
  }

  async stop(): Promise<void> {}

  async #convert({ source, segment, directory, views }: SegmentTask, ask: Ask): Promise<ConvertReply> {
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
    const outcomes: ViewOutcome[] = []
    const keys: NamedKeys[] = []
    for (const { view_id: id, name, version, hasWindow = false } of views) {
      const view = { id, name, version }
      const accepted = decidedAs('accepted', view, records)
      const answer = hasWindow ? await ask({ viewId: id, keys: bytesOf(accepted) }) : { found: new Uint8Array() }
      if ('failure' in answer) return { failure: { kind: 'fault', message: answer.failure } }
      const known = new Set(keysOf(accepted).filter((_, at) => answer.found[at] === 1))
      const rows = hasWindow ? firstOfKeys(accepted, known) : accepted
      files.push(...(await this.#writeView(directory, view, records, rows)))
      outcomes.push(outcomeOf(view, records, accepted.length - rows.length))
      if (hasWindow && rows.length > 0) keys.push(await this.#writeKeys(directory, id, rows))
    }
    return { files, views: outcomes, failed: [], keys }
  }

  /** Reads what an index is rebuilt from. */
  async #readKeys({ commits, directory }: KeysTask): Promise<ConvertReply> {
    const keys: NamedKeys[] = []
    for (const { id, files } of commits) {
      const found: string[] = []
      for (const { path, rows } of files) {
        const lines = linesOf((await this.#files.read(path))?.toString() ?? '')
        found.push(...(rows === undefined ? lines : lines.slice(rows.firstRow, rows.firstRow + rows.count)))
      }
      keys.push(await this.#writeKeys(directory, id, found))
    }
    return { ...emptyReply, keys }
  }

  async #writeKeys(directory: string, of: string, rows: readonly string[]): Promise<NamedKeys> {
    const name = `${of}.keys`
    await createFile(this.#files, join(directory, name), bytesOf(rows))
    return { of, name }
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

  async #writeView(
    directory: string,
    { id, ...view }: View,
    records: readonly string[],
    accepted = decidedAs('accepted', view, records),
  ): Promise<readonly NamedFile[]> {
    const { name, version } = view
    const files: NamedFile[] = []
    for (const [type, rows] of [
      ['view', accepted],
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

function outcomeOf(view: View, records: readonly string[], duplicates = 0): ViewOutcome {
  const { id: view_id, name: view_name, version: view_version } = view
  const counts = countsOf(view, records)
  const errors = counts.dlq > 0 ? { simulated: counts.dlq } : {}
  const without = duplicates === 0 ? {} : { duplicates }
  const { accepted, dropped } = counts
  const written = { ...counts, accepted: accepted - duplicates, dropped: dropped + duplicates }
  return { view_id, view_name, view_version, ...written, ...without, failed: 0, cast_nulls: 0, errors, last_error: null }
}

/** Different keys, in their order. */
function keysOf(records: readonly string[]): readonly number[] {
  return [...new Set(records.map(keyOf))].toSorted((a, b) => a - b)
}

function bytesOf(records: readonly string[]): Uint8Array {
  return Buffer.concat(
    keysOf(records).map((key) => {
      const bytes = Buffer.alloc(keyBytes)
      bytes.writeUInt32BE(key, keyBytes - 4)
      return bytes
    }),
  )
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split('\n')
}

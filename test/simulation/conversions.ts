/** Conversion that is exact and takes simulated time: a file with one line for each record. It fails, ends or hangs as it is told. */
import { join } from 'node:path'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import type { ConvertReply, ConvertTask, MergeTask, SegmentTask, Step } from '#delivery/convert/worker/protocol.ts'
import { createFile, type Files } from '#lib/files.ts'
import type { TaskEnd, TaskOptions } from '#lib/process-pool.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { ArtifactKind } from '#model/artifact.ts'
import { digest } from './bucket.ts'
import type { Delays, Life } from './kernel.ts'

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
    return { reply: task.kind === 'segment' ? await this.#convert(task) : emptyReply }
  }

  async stop(): Promise<void> {}

  async #convert({ source, segment, directory }: SegmentTask): Promise<ConvertReply> {
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
    return this.#write(directory, { kind: { type: 'parquet' }, name: 'records.parquet' }, lines)
  }

  async #merge({ sources, of: kind, directory }: MergeTask): Promise<ConvertReply> {
    const lines: string[] = []
    for (const { path, rows } of sources) {
      const found = linesOf((await this.#files.read(path))?.toString() ?? '')
      if (found.length !== rows) return { failure: { kind: 'fault', message: `${path} has ${found.length} rows, not ${rows}` } }
      lines.push(...found)
    }
    return this.#write(directory, { kind, name: 'merged.parquet' }, lines)
  }

  async #write(
    directory: string,
    file: { readonly kind: ArtifactKind; readonly name: string },
    lines: readonly string[],
  ): Promise<ConvertReply> {
    const text = lines.join('\n')
    const body = Buffer.from(text)
    await createFile(this.#files, join(directory, file.name), body)
    const rows = linesOf(text).length
    return { files: [{ ...file, bytes: body.length, rows, sha256: digest(body) }], views: [], failed: [] }
  }
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split('\n')
}

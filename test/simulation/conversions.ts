/** Conversion that is exact and takes simulated time: a file with one line for each record. It fails, ends or hangs as it is told. */
import { join } from 'node:path'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import type { ConvertReply, ConvertTask, SegmentTask, Step } from '#delivery/convert/worker/protocol.ts'
import { createFile, type Files } from '#lib/files.ts'
import type { TaskEnd, TaskOptions } from '#lib/process-pool.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { SegmentError } from '#log/segment-error.ts'
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
    const text = lines.join('\n')
    const body = Buffer.from(text)
    const name = 'records.parquet'
    await createFile(this.#files, join(directory, name), body)
    const rows = text === '' ? 0 : text.split('\n').length
    return { files: [{ kind: { type: 'parquet' }, name, bytes: body.length, rows, sha256: digest(body) }], views: [], failed: [] }
  }
}

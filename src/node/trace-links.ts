/**
 * Passes the traced requests of a segment from ingest, which knows them, to delivery, which links them.
 *
 * Owns: one small file for each segment that has such requests. Does not own: when there are traces.
 * Law: files are few and small, and losing one loses links and nothing else: they are neither synced nor needed.
 */
import { join } from 'node:path'
import { createFile, type Files } from '#lib/files.ts'
import { dayMs } from '#lib/time-units.ts'
import { isSpanContext, type SpanContext } from '#lib/tracing/trace-context.ts'

/** Requests that a segment links. */
export const linksMax = 32
/** Files of segments that delivery has not committed for so long are removed at a start, and when there is no room. */
const keptMs = dayMs
const countedAgainAfterMs = 60_000
const bytesMax = 8_192

export type LinkedSegment = { readonly logName: string; readonly incarnation: string; readonly seq: number }

export class TraceLinks {
  readonly #directory: string
  readonly #files: Files
  readonly #filesMax: number
  /** How many files may be written before they are counted again. */
  #room = 0
  /** Until when there is no more room. */
  #fullUntilMs = 0

  constructor(directory: string, files: Files, filesMax = 10_000) {
    this.#directory = directory
    this.#files = files
    this.#filesMax = filesMax
  }

  /** Makes the directory, and removes old files. */
  async prepare(nowMs: number): Promise<void> {
    await this.#files.makeDirectory(this.#directory)
    await this.#removeOld(nowMs)
  }

  /** Keeps the links of a segment, unless there are too many files. */
  async write(segment: LinkedSegment, requests: readonly SpanContext[], nowMs: number): Promise<void> {
    if (this.#room <= 0 && nowMs >= this.#fullUntilMs) {
      this.#room = this.#filesMax - (await this.#removeOld(nowMs))
      if (this.#room <= 0) this.#fullUntilMs = nowMs + countedAgainAfterMs
    }
    if (this.#room <= 0) return
    this.#room -= 1
    const links = requests.slice(0, linksMax).map(({ traceId, spanId }) => ({ traceId, spanId }))
    await createFile(this.#files, this.#path(segment), Buffer.from(JSON.stringify(links)))
  }

  /** Returns the links of a segment and removes them; empty if there are none. */
  async take(segment: LinkedSegment): Promise<readonly SpanContext[]> {
    const path = this.#path(segment)
    const bytes = await this.#files.read(path).catch(() => undefined)
    if (bytes === undefined || bytes.byteLength > bytesMax) return []
    await this.#files.remove(path)
    try {
      const links: unknown = JSON.parse(Buffer.from(bytes).toString())
      return Array.isArray(links) ? links.filter(isSpanContext).slice(0, linksMax) : []
    } catch {
      return []
    }
  }

  /** Removes old files. Returns how many are left. */
  async #removeOld(nowMs: number): Promise<number> {
    let left = 0
    for (const { name } of await this.#files.list(this.#directory)) {
      const path = join(this.#directory, name)
      const changedMs = (await this.#files.changedAt(path)) ?? nowMs
      if (nowMs - changedMs > keptMs) await this.#files.remove(path)
      else left += 1
    }
    return left
  }

  #path({ logName, incarnation, seq }: LinkedSegment): string {
    return join(this.#directory, `${logName}.${incarnation}.${seq}.json`)
  }
}

import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { type Files, removeLeftovers, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'

const Parked = z.object({ reason: z.string(), at: z.string() })
export type Parked = z.infer<typeof Parked>

export type ParkedSegmentsOptions = { readonly directory: string; readonly files: Files; readonly clock: Clock }

const suffix = '.parked.json'

/**
 * Records on disk which segments are parked, by commit id. The files are `<directory>/<commit id>.parked.json`: to retry a parked segment, the
 * operator removes its file. All are tried again at each start.
 */
export class ParkedSegments {
  readonly #options: ParkedSegmentsOptions
  /** Each file is read once. */
  #known: ReadonlyMap<string, Parked> = new Map()

  constructor(options: ParkedSegmentsOptions) {
    this.#options = options
  }

  /** Call it at the start. Returns the ids of the segments that were parked. */
  async retryAll(): Promise<readonly string[]> {
    const { directory, files } = this.#options
    await files.makeDirectory(directory)
    await removeLeftovers(files, directory, () => true)
    const retried: string[] = []
    for (const id of (await this.read()).keys()) {
      const isRemoved = await files.remove(this.#path(id)).then(
        () => true,
        // It stays parked, which its status says.
        () => false,
      )
      if (isRemoved) retried.push(id)
    }
    return retried
  }

  async park(id: string, reason: string): Promise<void> {
    const { files, clock } = this.#options
    const parked: Parked = { reason, at: isoTimestamp(clock.now()) }
    await writeDurably(files, this.#path(id), Buffer.from(JSON.stringify(parked)))
  }

  /** Returns the parked segments by commit id. */
  async read(): Promise<ReadonlyMap<string, Parked>> {
    const { directory, files } = this.#options
    const parked = new Map<string, Parked>()
    for (const { name } of await files.list(directory)) {
      if (!name.endsWith(suffix)) continue
      const id = name.slice(0, -suffix.length)
      parked.set(id, this.#known.get(id) ?? (await this.#readRecord(id)))
    }
    this.#known = parked
    return parked
  }

  async #readRecord(id: string): Promise<Parked> {
    const bytes = await this.#options.files.read(this.#path(id)).catch(() => undefined)
    const json = parseJson(Buffer.from(bytes ?? []).toString('utf8'))
    return Parked.safeParse(json).data ?? { reason: 'unknown', at: isoTimestamp(0) }
  }

  #path(id: string): string {
    return join(this.#options.directory, `${id}${suffix}`)
  }
}

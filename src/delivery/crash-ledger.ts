import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'

/** A segment is parked after more than this many crashes while it is converted alone. */
const crashesMax = 3

const Building = z.object({ crashes: z.int(), alone: z.boolean() })
type Building = z.infer<typeof Building>
const Parked = z.object({ reason: z.string(), at: z.string() })
export type Parked = z.infer<typeof Parked>

export type CrashLedgerOptions = { readonly directory: string; readonly files: Files; readonly clock: Clock }

/**
 * Records on disk which segments were being converted when this process crashed, and which segments are parked.
 *
 * Law: a segment that crashes the converter is retried a bounded number of times. Every segment that was being converted at a crash is a
 * suspect and is converted alone. A suspect that keeps crashing the process is parked. The files are
 * `<directory>/<commit id>.building.json` and `….parked.json`. To retry a parked segment, the operator removes the latter.
 */
export class CrashLedger {
  readonly #options: CrashLedgerOptions
  readonly #crashes = new Map<string, number>()

  constructor(options: CrashLedgerOptions) {
    this.#options = options
  }

  /** Reads the records of the last run. */
  async load(): Promise<void> {
    const { directory, files } = this.#options
    await files.makeDirectory(directory)
    for (const { name } of await files.list(directory)) {
      const id = /^(.+)\.building\.json$/.exec(name)?.[1]
      if (id === undefined) continue
      const last = Building.safeParse(await readJson(files, join(directory, name))).data ?? {
        crashes: 0,
        alone: false,
      }
      // The first crash makes the segment a suspect. Later crashes count only if no other segment could have caused them.
      const crashes = last.crashes + (last.alone || last.crashes === 0 ? 1 : 0)
      if (crashes > crashesMax) await this.park(id, `the process crashed ${crashes} times while converting this segment`)
      else this.#crashes.set(id, crashes)
    }
  }

  /** Whether the segment was being converted at a crash. */
  isSuspect(id: string): boolean {
    return this.#crashes.has(id)
  }

  async begin(id: string): Promise<void> {
    const state: Building = { crashes: this.#crashes.get(id) ?? 0, alone: this.#crashes.has(id) }
    await writeDurably(this.#options.files, this.#path(id, 'building'), Buffer.from(JSON.stringify(state)))
  }

  /** The conversion succeeded or failed without a crash. */
  async end(id: string): Promise<void> {
    this.#crashes.delete(id)
    await this.#options.files.remove(this.#path(id, 'building'))
  }

  async park(id: string, reason: string): Promise<void> {
    const parked: Parked = { reason, at: isoTimestamp(this.#options.clock.now()) }
    await writeDurably(this.#options.files, this.#path(id, 'parked'), Buffer.from(JSON.stringify(parked)))
    await this.end(id)
  }

  #path(id: string, state: 'building' | 'parked'): string {
    return join(this.#options.directory, `${id}.${state}.json`)
  }
}

/** Returns the parked segments by commit id. */
export async function listParked(files: Files, directory: string): Promise<ReadonlyMap<string, Parked>> {
  const parked = new Map<string, Parked>()
  for (const { name } of await files.list(directory)) {
    const id = /^(.+)\.parked\.json$/.exec(name)?.[1]
    if (id === undefined) continue
    const known = Parked.safeParse(await readJson(files, join(directory, name)))
    parked.set(id, known.data ?? { reason: 'unknown', at: isoTimestamp(0) })
  }
  return parked
}

async function readJson(files: Files, path: string): Promise<unknown> {
  return parseJson(Buffer.from((await files.read(path)) ?? []).toString('utf8'))
}

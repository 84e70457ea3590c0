import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'

/** A segment is parked after more than this many crashes while it is converted alone. */
const crashesMax = 3

const Building = z.object({ crashes: z.int(), alone: z.boolean() })
type Building = z.infer<typeof Building>
/** `crashes` is set if the segment was parked because it crashed the process. */
const Parked = z.object({ reason: z.string(), at: z.string(), crashes: z.int().optional() })
export type Parked = z.infer<typeof Parked>

export type CrashLedgerOptions = { readonly directory: string; readonly files: Files; readonly clock: Clock }

/**
 * Records on disk which segments were being converted when this process crashed, and which segments are parked.
 *
 * Law: a segment that crashes the converter is retried a bounded number of times. Every segment that was being converted at a crash is a
 * suspect and is converted alone. A suspect that keeps crashing the process is parked. Every parked segment is tried again at each start,
 * except one whose own crash caused this start. So after it was parked, it can end at most every second run: it never causes a crash loop.
 * The files are `<directory>/<commit id>.building.json` and `….parked.json`. To retry a parked segment, the operator removes the latter.
 */
export class CrashLedger {
  readonly #options: CrashLedgerOptions
  /** By commit id. Includes segments that are parked because of crashes: the operator may retry them at any time. */
  readonly #crashes = new Map<string, number>()

  constructor(options: CrashLedgerOptions) {
    this.#options = options
  }

  /** Reads the records of the last run. Returns the ids of parked segments that are tried again. */
  async load(): Promise<readonly string[]> {
    const { directory, files } = this.#options
    await files.makeDirectory(directory)
    const parkedBefore = await listParked(files, directory)
    const parkedNow = new Set<string>()
    for (const id of idsOf(await files.list(directory), 'building')) {
      const last = Building.safeParse(await readJson(files, this.#path(id, 'building'))).data ?? { crashes: 0, alone: false }
      // The first crash makes the segment a suspect. Later crashes count only if no other segment could have caused them.
      const crashes = last.crashes + (last.alone || last.crashes === 0 ? 1 : 0)
      this.#crashes.set(id, Math.min(crashes, crashesMax))
      if (crashes <= crashesMax) continue
      await this.#park(id, { reason: `the process crashed ${crashes} times while converting this segment`, crashes })
      parkedNow.add(id)
    }
    const retried = [...parkedBefore].filter(([id]) => !parkedNow.has(id))
    for (const [id, { crashes }] of retried) await this.#unpark(id, crashes !== undefined)
    return retried.map(([id]) => id)
  }

  /** Whether the segment was being converted at a crash. */
  isSuspect(id: string): boolean {
    return this.#crashes.has(id)
  }

  async begin(id: string): Promise<void> {
    await this.#writeBuilding(id, { crashes: this.#crashes.get(id) ?? 0, alone: this.#crashes.has(id) })
  }

  /** The conversion succeeded or failed without a crash. */
  async end(id: string): Promise<void> {
    this.#crashes.delete(id)
    // A record that stays makes the segment a suspect at the next start, which costs little.
    await this.#options.files.remove(this.#path(id, 'building')).catch(() => undefined)
  }

  async park(id: string, reason: string): Promise<void> {
    await this.#park(id, { reason })
    this.#crashes.delete(id)
  }

  async #park(id: string, facts: Omit<Parked, 'at'>): Promise<void> {
    const { files, clock } = this.#options
    const parked: Parked = { ...facts, at: isoTimestamp(clock.now()) }
    await writeDurably(files, this.#path(id, 'parked'), Buffer.from(JSON.stringify(parked)))
    await files.remove(this.#path(id, 'building'))
  }

  async #unpark(id: string, hasCrashed: boolean): Promise<void> {
    if (hasCrashed) {
      // One more crash while it is converted alone parks it again.
      this.#crashes.set(id, crashesMax)
      await this.#writeBuilding(id, { crashes: crashesMax, alone: false })
    }
    await this.#options.files.remove(this.#path(id, 'parked'))
  }

  #writeBuilding(id: string, state: Building): Promise<void> {
    return writeDurably(this.#options.files, this.#path(id, 'building'), Buffer.from(JSON.stringify(state)))
  }

  #path(id: string, state: 'building' | 'parked'): string {
    return join(this.#options.directory, `${id}.${state}.json`)
  }
}

/** Reads the records of parked segments, each file once. */
export class ParkedSegments {
  readonly #files: Files
  readonly #directory: string
  #known: ReadonlyMap<string, Parked> = new Map()

  constructor({ files, directory }: Omit<CrashLedgerOptions, 'clock'>) {
    this.#files = files
    this.#directory = directory
  }

  /** Returns the parked segments by commit id. */
  async read(): Promise<ReadonlyMap<string, Parked>> {
    const parked = new Map<string, Parked>()
    for (const id of idsOf(await this.#files.list(this.#directory), 'parked')) {
      parked.set(id, this.#known.get(id) ?? (await this.#readRecord(id)))
    }
    this.#known = parked
    return parked
  }

  async #readRecord(id: string): Promise<Parked> {
    const json = await readJson(this.#files, join(this.#directory, `${id}.parked.json`)).catch(() => undefined)
    return Parked.safeParse(json).data ?? { reason: 'unknown', at: isoTimestamp(0) }
  }
}

/** Returns the parked segments by commit id. */
export function listParked(files: Files, directory: string): Promise<ReadonlyMap<string, Parked>> {
  return new ParkedSegments({ files, directory }).read()
}

function idsOf(entries: readonly { readonly name: string }[], state: 'building' | 'parked'): readonly string[] {
  const suffix = `.${state}.json`
  return entries.flatMap(({ name }) => (name.endsWith(suffix) ? [name.slice(0, -suffix.length)] : []))
}

async function readJson(files: Files, path: string): Promise<unknown> {
  return parseJson(Buffer.from((await files.read(path)) ?? []).toString('utf8'))
}

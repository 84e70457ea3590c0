import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'

/** Times the process may die while it converts one segment alone before the segment is parked. */
const crashesMax = 3

const Building = z.object({ crashes: z.int(), alone: z.boolean() })
type Building = z.infer<typeof Building>
const Parked = z.object({ reason: z.string(), at: z.string() })
export type Parked = z.infer<typeof Parked>

export type SuspectsOptions = { readonly directory: string; readonly files: Files; readonly clock: Clock }

/**
 * Remembers, across crashes of this process, which segments were being converted, and which are parked.
 *
 * A segment that kills the converter must not kill it for ever: what was in work when the process died is a suspect and is
 * converted alone, and one that kills it again and again while alone is parked. The files are
 * `<directory>/<commit id>.building.json` and `….parked.json`; removing a parked one is the operator's retry.
 */
export class Suspects {
  readonly #options: SuspectsOptions
  readonly #crashes = new Map<string, number>()

  constructor(options: SuspectsOptions) {
    this.#options = options
  }

  /** Reads what the last run left. */
  async load(): Promise<void> {
    const { directory, files } = this.#options
    await files.makeDirectory(directory)
    for (const { name } of await files.list(directory)) {
      const id = /^(.+)\.building\.json$/.exec(name)?.[1]
      if (id === undefined) continue
      const was = Building.safeParse(await readJson(files, join(directory, name))).data ?? {
        crashes: 0,
        alone: false,
      }
      // The first crash makes a suspect. Later ones count only when nothing else ran that could have been the cause.
      const crashes = was.crashes + (was.alone || was.crashes === 0 ? 1 : 0)
      if (crashes > crashesMax) await this.park(id, `the converting process died ${crashes} times on this segment`)
      else this.#crashes.set(id, crashes)
    }
  }

  /** Whether the segment was in work when the process died. */
  isSuspect(id: string): boolean {
    return this.#crashes.has(id)
  }

  async begin(id: string): Promise<void> {
    const state: Building = { crashes: this.#crashes.get(id) ?? 0, alone: this.#crashes.has(id) }
    await writeDurably(this.#options.files, this.#path(id, 'building'), Buffer.from(JSON.stringify(state)))
  }

  /** The conversion ended with the process alive, well or not. */
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

/** Every parked segment by its commit id. */
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

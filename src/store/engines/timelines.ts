/**
 * The newest state of each Postgres that this installation has used, and which servers are older.
 *
 * A standby that is promoted begins a timeline. The primary from before keeps its own, and takes writes if it returns.
 * Owns: what is newest, and who is told when it changes. Does not own: where it is remembered (store/cluster/timeline-file.ts), connections.
 * Law: a server that is older than one that was seen is not used, also after a restart, unless an operator has accepted its database since.
 */
import pg from 'pg'
import { databaseErrorKind, olderServerCode } from './database-error.ts'
import { engineLimits } from './limits.ts'

/** State of a server that takes writes. */
export type Standing = {
  /** Identifies the server and its standbys: Postgres makes it with the files. */
  readonly system: string
  readonly timeline: number
  /** When an operator last accepted the database (epoch ms), 0 for never. It counts more than the timeline. */
  readonly generation: number
}

/** Where the newest standings are kept, one for each system. */
export interface TimelineMemory {
  read(): Promise<readonly Standing[]>
  /** Never throws: a memory that cannot be written must not stop control. */
  write(standings: readonly Standing[]): Promise<void>
}

/** For commands and tests that forget. */
const noMemory: TimelineMemory = { read: async () => [], write: async () => undefined }

/** The server is a primary from before a failover. */
export class OlderServerError extends Error {
  readonly code = olderServerCode

  constructor({ timeline, generation }: Standing, newest: Standing) {
    super(
      newest.generation > generation
        ? `the server has timeline ${timeline}, and another one was accepted since: it is out of date`
        : `the server has timeline ${timeline}, and this installation has used timeline ${newest.timeline}: it is a primary from before a failover`,
    )
  }
}

export class KnownTimelines {
  readonly #memory: TimelineMemory
  readonly #listeners = new Set<() => void>()
  #newest: Promise<Map<string, Standing>> | undefined
  #written: Promise<void> = Promise.resolve()
  #loaded: ReadonlyMap<string, Standing> = new Map()

  constructor(memory: TimelineMemory = noMemory) {
    this.#memory = memory
  }

  /** Learns the standing of a server that takes writes. It is remembered when this resolves. Throws OlderServerError. */
  async observe(standing: Standing): Promise<void> {
    this.#newest ??= this.#load()
    const newest = await this.#newest
    const problem = this.problemWith(standing)
    if (problem !== undefined) throw problem
    const known = newest.get(standing.system)
    if (known === undefined || compare(standing, known) > 0) {
      newest.delete(standing.system)
      newest.set(standing.system, standing)
      for (const listener of this.#listeners) listener()
      const standings = [...newest.values()].slice(-engineLimits.systemsRemembered)
      this.#written = this.#written.then(() => this.#memory.write(standings))
    }
    await this.#written
  }

  /** Whether a newer server was seen since. */
  isOlder(standing: Standing | undefined): boolean {
    return this.problemWith(standing) !== undefined
  }

  /** Returns why a server must not be used; undefined if no newer one was seen. */
  problemWith(standing: Standing | undefined): OlderServerError | undefined {
    const known = standing && this.#loaded.get(standing.system)
    const isOlder = standing !== undefined && known !== undefined && compare(standing, known) < 0
    return isOlder ? new OlderServerError(standing, known) : undefined
  }

  /** Calls the listener whenever a server turned out to be newer than all before. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener)
  }

  async #load(): Promise<Map<string, Standing>> {
    const newest = new Map((await this.#memory.read()).map((standing) => [standing.system, standing]))
    this.#loaded = newest
    return newest
  }
}

/** Returns a negative number if `a` is older than `b`, 0 if neither is. */
export function compare(a: Standing, b: Standing): number {
  return a.generation - b.generation || a.timeline - b.timeline
}

/** Not `pg_control_checkpoint`, which tells the timeline of a promoted server only after its next checkpoint. */
const timelineOf = `select (select system_identifier::text from pg_control_system()) as system, pg_walfile_name(pg_current_wal_lsn()) as file`

/** Returns undefined if the server does not tell: a managed one may forbid these functions, or not have them. */
export async function readStanding(client: pg.ClientBase): Promise<Standing | undefined> {
  const row = await askIfAllowed<{ system: string; file: string }>(client, timelineOf)
  if (row === undefined) return undefined
  // Before the first migration there is no such table.
  const accepted = await askIfAllowed<{ generation: string }>(client, 'select generation::text from epoch')
  const generation = Number(accepted?.generation ?? 0)
  return { system: row.system, timeline: Number.parseInt(row.file.slice(0, 8), 16), generation }
}

/** Returns the first row; undefined if the server forbids the question, or does not know what it is about. */
export async function askIfAllowed<T extends pg.QueryResultRow>(client: pg.ClientBase, text: string): Promise<T | undefined> {
  // The types of `pg` do not know that a query can have a timeout.
  const question = { text, query_timeout: engineLimits.probeMs }
  try {
    return (await client.query<T>(question)).rows[0]
  } catch (error) {
    if (error instanceof pg.DatabaseError && databaseErrorKind(error) !== 'unavailable') return undefined
    throw error
  }
}

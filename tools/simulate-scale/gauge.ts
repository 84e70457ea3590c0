/**
 * Measures what a piece of work costs control and Postgres.
 *
 * Owns: CPU time of their processes, statements, WAL. All of it depends little on what else the machine does, unlike durations.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { sql } from 'kysely'
import type { Store } from '../../src/store/store.ts'

/** Clock ticks per second in /proc, on every Linux that Node runs on. */
const ticksPerSecond = 100

export type Cost = {
  readonly seconds: number
  readonly controlCpuMs: number
  readonly databaseCpuMs: number
  readonly statements: number
  readonly walBytes: number
}

type Reading = Cost

export class Gauge {
  readonly #store: Store
  readonly #control: number
  readonly #postmaster: number

  private constructor(store: Store, control: number, postmaster: number) {
    this.#store = store
    this.#control = control
    this.#postmaster = postmaster
  }

  /** `control` is the id of its process. The database must have pg_stat_statements, and be on this machine. */
  static async open(store: Store, control: number): Promise<Gauge> {
    await sql`create extension if not exists pg_stat_statements`.execute(store.db)
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(store.db)
    return new Gauge(store, control, parentOf(rows[0]?.pid ?? 0))
  }

  async measure(work: () => Promise<unknown>): Promise<Cost> {
    const before = await this.#read()
    await work()
    const after = await this.#read()
    return {
      seconds: after.seconds - before.seconds,
      controlCpuMs: after.controlCpuMs - before.controlCpuMs,
      databaseCpuMs: after.databaseCpuMs - before.databaseCpuMs,
      statements: after.statements - before.statements,
      walBytes: after.walBytes - before.walBytes,
    }
  }

  /** Resolves when control has nothing to do. */
  async untilIdle(): Promise<void> {
    const windowMs = 250
    for (let busyMs = Number.POSITIVE_INFINITY; busyMs > windowMs / 10; ) {
      const before = cpuMs(this.#control)
      await new Promise((resolve) => setTimeout(resolve, windowMs))
      busyMs = cpuMs(this.#control) - before
    }
  }

  /** Resident memory of control. */
  controlBytes(): number {
    const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.#control}/status`, 'utf8')) ?? []
    return Number(kilobytes) * 1024
  }

  /** Returns the statements that took most time since the start, for a look at what is slow. */
  async slowest(count: number): Promise<readonly { readonly query: string; readonly calls: number; readonly ms: number }[]> {
    const { rows } = await sql<{ query: string; calls: number; ms: number }>`
      select query, cast(calls as integer) as calls, total_exec_time as ms from pg_stat_statements order by total_exec_time desc limit ${count}`.execute(
      this.#store.db,
    )
    return rows
  }

  async #read(): Promise<Reading> {
    const { rows } = await sql<{ statements: string; wal: string }>`
      select (select sum(calls) from pg_stat_statements)::text as statements,
        pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text as wal`.execute(this.#store.db)
    const children = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && parentOf(Number(pid)) === this.#postmaster)
    const backends = children.reduce((sum, pid) => sum + cpuMs(Number(pid)), 0)
    return {
      seconds: performance.now() / 1000,
      controlCpuMs: cpuMs(this.#control),
      databaseCpuMs: backends + cpuMs(this.#postmaster) + reapedCpuMs(this.#postmaster),
      statements: Number(rows[0]?.statements),
      walBytes: Number(rows[0]?.wal),
    }
  }
}

/** The fields of /proc/PID/stat behind the name, which may contain spaces. Empty if the process has ended. */
function statOf(pid: number): readonly string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

const parentOf = (pid: number) => Number(statOf(pid)[1])

function cpuMs(pid: number): number {
  const [user = 0, system = 0] = statOf(pid).slice(11, 13).map(Number)
  return ((user + system) * 1000) / ticksPerSecond
}

/** The CPU time of children that have ended. */
function reapedCpuMs(pid: number): number {
  const [user = 0, system = 0] = statOf(pid).slice(13, 15).map(Number)
  return ((user + system) * 1000) / ticksPerSecond
}

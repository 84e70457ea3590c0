/** A host of the cluster: an address, and the programs that run there. */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { type Place, spawnAt } from '../../../tools/services/processes.ts'

export class Host {
  readonly name: string
  readonly place: Place
  /** Address of IPv6, or undefined without namespaces. */
  readonly ipv6: string | undefined
  readonly #children = new Set<ChildProcess>()

  constructor(name: string, place: Place, ipv6?: string) {
    this.name = name
    this.place = place
    this.ipv6 = ipv6
  }

  get address(): string {
    return this.place.address
  }

  get addresses(): readonly string[] {
    return this.ipv6 === undefined ? [this.address] : [this.address, this.ipv6]
  }

  spawn(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
    const child = spawnAt(this.place, program, args, options)
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    return child
  }

  /** Sends the signal to all programs of this host and to the processes that they started, as one. */
  signal(signal: NodeJS.Signals): void {
    const roots = [...this.#children].flatMap(({ pid }) => pid ?? [])
    signalAll(roots, signal)
  }
}

/** Sends the signal to the processes and to all that they started. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of withDescendants(pids)) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has just ended.
    }
  }
}

/** Returns the processes and all that they started, parents first. */
function withDescendants(pids: readonly number[]): readonly number[] {
  const children = Map.groupBy(readParents(), ({ parent }) => parent)
  const found = [...pids]
  for (const pid of found) found.push(...(children.get(pid) ?? []).map((child) => child.pid))
  return found
}

function readParents(): readonly { readonly pid: number; readonly parent: number }[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      // The name of the program is in parentheses, and may contain some itself.
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      return [{ pid: Number(pid), parent }]
    } catch {
      return []
    }
  })
}

import { readFileSync } from 'node:fs'
import { processTree, roleOf } from './process-memory.ts'

const intervalMs = 200

/** Bytes of PSS and RSS. */
type Size = { readonly pss: number; readonly rss: number }
export type Peaks = ReadonlyMap<string, Size>

/**
 * Watches a process and its descendants, which may come and go. Each role has the peak of its processes together, and so have groups of
 * roles: their peaks need not be at the same time.
 */
export class MemoryPeaks {
  readonly #pid: number
  readonly #groups: Readonly<Record<string, readonly string[]>>
  readonly #timer: NodeJS.Timeout
  #peaks = new Map<string, Size>()

  constructor(pid: number, groups: Readonly<Record<string, readonly string[]>>) {
    this.#pid = pid
    this.#groups = groups
    this.#timer = setInterval(() => this.#sample(), intervalMs)
  }

  /** Returns the peaks since the last call. */
  take(): Peaks {
    this.#sample()
    const peaks = this.#peaks
    this.#peaks = new Map()
    return peaks
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const sizes = new Map<string, Size>()
    const add = (name: string, { pss, rss }: Size) => {
      const before = sizes.get(name) ?? { pss: 0, rss: 0 }
      sizes.set(name, { pss: before.pss + pss, rss: before.rss + rss })
    }
    for (const [role, size] of sizesIn(this.#pid)) {
      add(role, size)
      for (const [group, roles] of Object.entries(this.#groups)) if (roles.includes(role)) add(group, size)
    }
    for (const [name, { pss, rss }] of sizes) {
      const before = this.#peaks.get(name) ?? { pss: 0, rss: 0 }
      this.#peaks.set(name, { pss: Math.max(pss, before.pss), rss: Math.max(rss, before.rss) })
    }
  }
}

function* sizesIn(pid: number): Generator<readonly [role: string, Size]> {
  for (const each of processTree(pid)) {
    try {
      const rollup = readFileSync(`/proc/${each}/smaps_rollup`, 'latin1')
      const bytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(rollup)?.[1] ?? 0) * 1024
      yield [roleOf(each), { pss: bytes('Pss'), rss: bytes('Rss') }]
    } catch {
      // It has just ended.
    }
  }
}

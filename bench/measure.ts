import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Returns CPU seconds, so that other processes on the machine hardly matter. The work compared here uses one core at a time. */
export async function coreSeconds(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1e6
}

/** Returns the best of several rounds: disturbances only make a round slower. */
export function best(values: readonly number[]): number {
  return Math.min(...values)
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** A directory that is removed at the end. */
export class Scratch implements AsyncDisposable {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static async create(): Promise<Scratch> {
    return new Scratch(await mkdtemp(join(tmpdir(), 'inlet-bench-')))
  }

  /** Returns the path of a new directory in it. */
  async make(name: string): Promise<string> {
    const path = join(this.path, name)
    await mkdir(path)
    return path
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true })
  }
}

export async function inScratch<T>(work: (directory: string) => Promise<T>): Promise<T> {
  await using scratch = await Scratch.create()
  return await work(scratch.path)
}

import { mkdtemp, rm } from 'node:fs/promises'
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

export async function inScratch<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-bench-'))
  try {
    return await work(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

export function line(what: string, bytes: number, records: number, took: number, comparison = ''): void {
  const speed = `${(bytes / 1e6 / took).toFixed(0).padStart(6)} MB/s ${(records / 1e6 / took).toFixed(2).padStart(6)} Mrow/s`
  console.log(`  ${what.padEnd(52)}${(took * 1000).toFixed(0).padStart(6)} ms${speed}  ${comparison}`)
}

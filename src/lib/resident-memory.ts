import { readFileSync } from 'node:fs'

export type ResidentMemory = { readonly bytes: number; readonly peakBytes: number }

/** Returns how much of a process is in memory, pages that it shares with others included; undefined if it is gone, or not on Linux. */
export function residentMemoryOf(pid: number): ResidentMemory | undefined {
  let status: string
  try {
    status = readFileSync(`/proc/${pid}/status`, 'latin1')
  } catch {
    return undefined
  }
  const bytes = bytesIn(status, /^VmRSS:\s*(\d+) kB$/m)
  const peakBytes = bytesIn(status, /^VmHWM:\s*(\d+) kB$/m)
  // A process that has ended but was not waited for yet has neither.
  return bytes === undefined || peakBytes === undefined ? undefined : { bytes, peakBytes }
}

/** Returns the resident memory of several processes together. */
export function residentBytesOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (residentMemoryOf(pid)?.bytes ?? 0), 0)
}

function bytesIn(status: string, pattern: RegExp): number | undefined {
  const kilobytes = pattern.exec(status)?.[1]
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024
}

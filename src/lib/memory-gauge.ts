import { readFileSync } from 'node:fs'

const shareMax = 3 / 4

/**
 * Returns a function that says whether this process has mapped most of the memory that it may. Allocators keep what was freed, each for
 * itself, so a process at its limit may fail at work that needs little.
 */
export function memoryGauge(): () => boolean {
  const limitBytes = numberIn('/proc/self/limits', /^Max data size +(\d+)/m)
  if (limitBytes === undefined) return () => false
  return () => (numberIn('/proc/self/status', /^VmData:\s*(\d+)/m) ?? 0) * 1024 > limitBytes * shareMax
}

function numberIn(path: string, pattern: RegExp): number | undefined {
  try {
    const found = pattern.exec(readFileSync(path, 'latin1'))?.[1]
    return found === undefined ? undefined : Number(found)
  } catch {
    // Only Linux has it.
    return undefined
  }
}

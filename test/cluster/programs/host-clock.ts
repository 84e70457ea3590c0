/** The wall clock of a host, for its programs: libfaketime adds an offset that a file contains. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from './program.ts'

const library = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'

/** Whether clocks can be moved here. */
export const canMoveClocks = existsSync(library)

export function moveClock(directory: string, host: string, seconds: number): void {
  writeFileSync(clockFile(directory, host), `${seconds < 0 ? '' : '+'}${seconds}`)
}

/** Time that only advances stays as it is: a jump of the wall clock is all that a machine sees. */
export function clockEnvironment(directory: string, host: string): Environment {
  if (!canMoveClocks) return {}
  moveClock(directory, host, 0)
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: clockFile(directory, host),
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
}

function clockFile(directory: string, host: string): string {
  return join(directory, `${host}.clock`)
}

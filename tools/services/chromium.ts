/** The Chromium that the tests of the console drive. Each test starts its own: it costs little, and nothing is shared. */
import { execFileSync } from 'node:child_process'
import { requireProgram } from './processes.ts'

/** Returns the path of the program. */
export function findChromium(): string {
  requireProgram('chromium', 'chromium')
  return execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim()
}

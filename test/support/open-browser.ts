/** A Chromium, and the way into an Inlet, for tests and for the benchmark of the console. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import type { Installation } from './installation.ts'
import { until } from './until.ts'

/** Empty without one. */
export const chromiumProgram = process.env['INLET_TEST_CHROMIUM'] ?? ''

const quiet = ['--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

export async function openBrowser(executablePath = chromiumProgram): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', ...quiet] })
}

/** The link that the first start leaves in a file. */
export async function firstLink({ directory }: Installation): Promise<string> {
  const path = join(directory, 'sign-in-link')
  await until('the first sign-in link', () => existsSync(path))
  return readFileSync(path, 'utf8').trim()
}

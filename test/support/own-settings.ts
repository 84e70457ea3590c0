/**
 * Keeps tests away from what belongs to whoever runs them: profiles of `inlet login`, credentials of AWS, and options of Inlet in the shell.
 * Without this, a test would call the Inlet that somebody is signed in to.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

/** Variables that are meant for the tests. */
const meant = /^INLET_(TEST|E2E|SCHEMATHESIS)/
const foreign = /^(INLET|AWS|OTEL)_/

/** Changes the environment of this process, which the workers of vitest inherit: called once, by vitest.config.ts. */
export function useOwnSettings(environment: NodeJS.ProcessEnv): void {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-settings-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  // A deployment that the tests were given may be reached with these.
  const isGiven = environment['INLET_E2E_CONTROL_URL'] !== undefined
  for (const name of Object.keys(environment)) if (foreign.test(name) && !meant.test(name) && !isGiven) delete environment[name]
  // Go keeps its own settings, although they are in the directory that is replaced.
  environment['GOENV'] ??= join(environment['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'go/env')
  environment['XDG_CONFIG_HOME'] = directory
  if (isGiven) return
  environment['AWS_CONFIG_FILE'] = join(directory, 'aws-config')
  environment['AWS_SHARED_CREDENTIALS_FILE'] = join(directory, 'aws-credentials')
}

/** Settings that a process of Inlet needs if it does not get the whole environment. */
export function ownSettings(): Record<string, string> {
  const names = ['XDG_CONFIG_HOME', 'AWS_CONFIG_FILE', 'AWS_SHARED_CREDENTIALS_FILE']
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])))
}

/** `inlet doctor`: checks this machine, its installation and the connection of this user, and says what to do. Changes nothing. */
import { errorMessage } from '#lib/error-message.ts'
import { readProfiles } from '../remote/profiles.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printJson } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { checkConnection } from './connection.ts'
import { checkCopies } from './copy-store.ts'
import { type Finding, fail } from './finding.ts'
import { checkInstallation } from './installation.ts'
import { checkMachine } from './machine.ts'
import { checkNamedStore } from './named-store.ts'

/** The exit code is 1 if a check fails. Warnings do not change it. */
export async function examine(this: CliContext, { json, store }: JsonFlags & { readonly store?: string }): Promise<void> {
  const findings =
    store === undefined ? [...(await checkHere(this)), ...(await checkThere(this))] : await checkNamedStore(this, store)
  if (json) printJson(this, findings)
  else this.process.stdout.write(store === undefined ? findings.map(describe).join('') : describeTable(findings))
  if (findings.some(({ status }) => status === 'fail')) this.process.exitCode = 1
}

async function checkHere(context: CliContext): Promise<readonly Finding[]> {
  try {
    const config = await context.readConfig()
    return [
      ...(await checkMachine(config, context.clock.now())),
      ...(await checkInstallation(config, context.clock)),
      ...(await checkCopies(config)),
    ]
  } catch (error) {
    return [fail('configuration', errorMessage(error), 'correct the environment variables: docs/configuration.md lists them')]
  }
}

async function checkThere(context: CliContext): Promise<readonly Finding[]> {
  try {
    return (await isSignedIn(context)) ? await checkConnection(context) : []
  } catch (error) {
    return [fail('connection', errorMessage(error), 'sign in again (inlet login)')]
  }
}

async function isSignedIn(context: CliContext): Promise<boolean> {
  const environment = await context.readEnvironment()
  if (environment['INLET_API_KEY'] || environment['INLET_PROFILE']) return true
  const { profiles } = await readProfiles(environment)
  return Object.keys(profiles).length > 0
}

function describe({ check, status, message, next_step }: Finding): string {
  return `${status.padEnd(4)}  ${check}: ${inOneLine(message)}\n${next_step === null ? '' : `      → ${next_step}\n`}`
}

function describeTable(findings: readonly Finding[]): string {
  return toTable(
    findings.flatMap(({ check, status, message, next_step }) => [
      [status, check, inOneLine(message)],
      ...(next_step === null ? [] : [['', '', `→ ${next_step}`]]),
    ]),
  )
}

function inOneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
}

/** `inlet doctor`: checks this machine, its installation and the connection of this user, and says what to do. Changes nothing. */
import { errorMessage } from '#lib/error-message.ts'
import { UserError } from '#lib/user-error.ts'
import { readProfiles } from '../remote/profiles.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printJson } from '../terminal/print-json.ts'
import { checkConnection } from './connection.ts'
import { checkCopies } from './copy-store.ts'
import { type Finding, fail } from './finding.ts'
import { checkInstallation } from './installation.ts'
import { checkMachine } from './machine.ts'

/** The exit code is 1 if a check fails. Warnings do not change it. */
export async function examine(this: CliContext, { json, store }: JsonFlags & { readonly store?: string }): Promise<void> {
  const findings =
    store === undefined ? [...(await checkHere(this)), ...(await checkThere(this))] : await checkNamedStore(this, store)
  if (json) printJson(this, findings)
  else for (const finding of findings) this.process.stdout.write(describe(finding))
  if (findings.some(({ status }) => status === 'fail')) this.process.exitCode = 1
}

async function checkNamedStore(context: CliContext, store: string): Promise<readonly Finding[]> {
  const { paths, ...config } = await context.readConfig({ INLET_COPY_URL: store })
  if (config.copyUrl === null) throw new UserError('--store: must be s3://bucket/prefix or file:///directory, not empty')
  return await checkCopies(config)
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
  const text = message.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
  return `${status.padEnd(4)}  ${check}: ${text}\n${next_step === null ? '' : `      → ${next_step}\n`}`
}

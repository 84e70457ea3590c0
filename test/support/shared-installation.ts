/**
 * Global setup of the end-to-end suites: starts the Inlet that their black-box tests share, unless they run against a given deployment.
 * Nobody waits for it here: the tests wait until it is ready.
 */
import type { TestProject } from 'vitest/node'
import { Installation, type InstallationAddress } from './installation.ts'
import { failIfLeaked, watchChildren } from './secrets-in-output.ts'

declare module 'vitest' {
  interface ProvidedContext {
    sharedInstallation: InstallationAddress | undefined
  }
}

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (process.env['INLET_E2E_CONTROL_URL']) {
    project.provide('sharedInstallation', undefined)
    return undefined
  }
  // No test file starts it, so none would check what it prints.
  watchChildren()
  const installation = await Installation.create()
  project.provide('sharedInstallation', installation.address)
  const child = installation.spawn('start')
  const report = () => process.stderr.write(`the shared Inlet ended:\n${installation.log}\n`)
  child.once('exit', report)
  return async () => {
    child.off('exit', report)
    await installation[Symbol.asyncDispose]()
    failIfLeaked()
  }
}

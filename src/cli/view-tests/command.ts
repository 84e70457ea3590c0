/** `inlet test`: runs the tests of the views of a set-up, without a server. */
import { writeFile } from 'node:fs/promises'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { RecordDecider } from '#preview/decide-records.ts'
import { readDeclared, rejectMisnamed } from '../setup/kinds/declared.ts'
import { Problems } from '../setup/kinds/problems.ts'
import { readSetupFiles } from '../setup/kinds/read-files.ts'
import { paintFor } from '../setup/plan-command.ts'
import type { CliContext } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'
import { describeResults, resultsToJson, resultsToJunit } from './describe-results.ts'
import { readTests } from './read-tests.ts'
import { type CaseResult, compileViews, runSuite } from './run-tests.ts'
import { updateTests } from './update.ts'

export type TestFlags = { readonly update: boolean; readonly junit?: string; readonly json: boolean }

export async function test(this: CliContext, { update, junit, json }: TestFlags, directory: string): Promise<void> {
  const problems = new Problems()
  const { files, tests } = await readSetupFiles([directory], problems)
  const setup = readDeclared(files, await this.readEnvironment(), problems, ['views'])
  const suites = readTests(rejectMisnamed(tests, problems), setup, problems, { mayBeOpen: update })
  const decider = await RecordDecider.open(this.clock)
  const results: CaseResult[] = []
  try {
    const compiled = await compileViews(setup, decider, problems)
    for (const suite of suites) {
      const view = compiled.get(suite.view.value.name)
      if (view !== undefined) results.push(...(await runSuite(suite, view, decider, problems)))
    }
  } finally {
    decider.close()
  }
  problems.throwIfAny('No test was run.')
  if (suites.length === 0)
    throw new UserError(
      `${directory} has no tests: write one beside a view, such as views/orders.test.yaml. inlet init writes an example`,
    )
  const tested = new Set(suites.map(({ view }) => view.value.name))
  const untested = setup.views.map(({ value }) => value.name).filter((name) => !tested.has(name))
  if (json) printJson(this, resultsToJson(results, untested))
  else this.process.stdout.write(describeResults(results, untested, await paintFor(this)))
  if (junit !== undefined) await writeReport(junit, resultsToJunit(results))
  if (update) for (const line of await updateTests(results)) (json ? this.process.stderr : this.process.stdout).write(`${line}\n`)
  else if (results.some(({ differences }) => differences.length > 0)) this.process.exitCode = 1
}

async function writeReport(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text)
  } catch (error) {
    throw new UserError(`cannot write ${path}: ${errorCode(error) ?? error}`)
  }
}

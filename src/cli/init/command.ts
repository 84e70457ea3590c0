/**
 * `inlet init`: writes a set-up that works, with a test and a workflow for CI.
 *
 * Law: it replaces no file, and writes nothing beside a set-up that is there already.
 */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { setupJsonSchema } from '#model/setup.ts'
import { viewTestsJsonSchema } from '#model/view-test.ts'
import { isSetupFile } from '../setup/kinds/read-files.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type InitialFile, setupFiles, workflowFile } from './files.ts'

export type InitFlags = { readonly region: string }

export async function init(this: CliContext, { region }: InitFlags, directory: string): Promise<void> {
  const { root, folder } = placeOf(directory)
  await assertFree(directory)
  const schemas = [
    { path: 'setup.schema.json', schema: setupJsonSchema() },
    { path: 'tests.schema.json', schema: viewTestsJsonSchema() },
  ].map(({ path, schema }) => ({ path, text: `${JSON.stringify(schema, undefined, 2)}\n` }))
  const inSetup = [...setupFiles(region), ...schemas].map(({ path, text }) => ({ path: join(directory, path), text }))
  const { path, text } = workflowFile(folder)
  const { stdout } = this.process
  for (const file of [...inSetup, { path: relative(process.cwd(), join(root, path)) || path, text }])
    stdout.write(`${(await writeNew(file)) ? 'Wrote' : 'Kept '} ${file.path}\n`)
  const given = directory === 'setup' ? '' : ` ${directory}`
  stdout.write(`\nTry it:\n  inlet test${given}\n  inlet plan -f ${directory}   # after inlet login\n`)
}

/** The workflow belongs in the root of the repository: the working directory, unless the set-up is elsewhere. */
function placeOf(directory: string): { readonly root: string; readonly folder: string } {
  const path = resolve(directory)
  const from = relative(process.cwd(), path)
  if (from.startsWith('..') || resolve(from) !== path) return { root: path, folder: '.' }
  const folder = from === '' ? '.' : from.replaceAll(sep, '/')
  if (!/^[\w.][\w./-]*$/.test(folder))
    throw new UsageError(`DIR must have only letters, digits, ".", "_", "-" and "/", because the workflow names it: ${directory}`)
  return { root: process.cwd(), folder }
}

async function assertFree(directory: string): Promise<void> {
  const names = await readdir(directory, { recursive: true }).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw new UserError(`cannot read ${directory}: ${errorCode(error) ?? error}`)
  })
  const found = names.find((name) => !name.startsWith('.') && isSetupFile(name))
  if (found !== undefined)
    throw new UserError(`${directory} has a set-up already, with ${found}: nothing was written. Name another directory`)
}

/** Returns whether it was written: a file that exists is kept. */
async function writeNew({ path, text }: InitialFile): Promise<boolean> {
  const fail = (error: unknown): never => {
    throw new UserError(`cannot write ${path}: ${errorCode(error) ?? error}`)
  }
  await mkdir(dirname(path), { recursive: true }).catch(fail)
  return writeFile(path, text, { flag: 'wx' }).then(
    () => true,
    (error: unknown) => (errorCode(error) === 'EEXIST' ? false : fail(error)),
  )
}

/** The set-up of an account in files. */

import { regionPattern } from '#model/patterns.ts'
import { command } from './command.ts'
import { flag, json, optional, withDefault } from './parameters.ts'

const file = {
  kind: 'parsed',
  parse: String,
  variadic: true,
  brief: 'directory with YAML files, or one file; - reads a pipe; may be repeated',
  placeholder: 'PATH',
} as const
const prune = flag('delete what is in no file, of the kinds that the files have')

function parseRegion(text: string): string {
  if (regionPattern.test(text)) return text
  throw new Error('must be three lower-case letters, such as loc')
}

export const planCommand = command(
  'show what inlet apply would change',
  async () => (await import('../setup/plan-command.ts')).plan,
  {
    flags: {
      file,
      prune,
      data: flag('also compare changed views with the published ones, over records of the last day'),
      exitCode: flag('exit with 3 if there are changes'),
      json,
    },
    aliases: { f: 'file' },
  },
  `Compares files with the account, and changes nothing: what would be created, changed and deleted, field by field. All that is wrong with the files is shown at once, with the place.

With --data, each changed view runs over stored records of the endpoints that it is attached to, beside the published version: rows, dead letters, NULLs, columns, and samples of what differs. It reads a bounded sample of the newest raw Parquet, and needs a key with the scope query.

The files are described in docs/setup-in-git.md, and inlet schema prints their JSON Schema. Exit codes: 0 success, 1 failure, 2 wrong usage; with --exit-code 3 if there are changes.`,
)

export const applyCommand = command(
  'make the account what files say',
  async () => (await import('../setup/apply-command.ts')).apply,
  {
    flags: {
      file,
      prune,
      yes: flag('do not ask'),
      keysTo: optional('file that gets the secrets of new API keys, as JSON by name; only its user can read it', 'FILE'),
      json,
    },
    aliases: { f: 'file' },
  },
  `Shows the plan, asks, and makes the changes, in an order in which each can be made. If one fails, the rest is left as it is, and running it again continues.

Nothing is deleted without --prune. Secrets of new API keys are shown once on a terminal; elsewhere --keys-to FILE takes them.`,
)

export const exportCommand = command(
  'write what the account has as files for inlet apply',
  async () => (await import('../setup/export-command.ts')).exportSetup,
  {
    flags: {
      file: optional('directory for the files; if not given, all is printed', 'DIR'),
      overwrite: flag('also if the directory has files'),
      json,
    },
    aliases: { f: 'file' },
  },
  `Writes destinations, endpoints, views, bindings and keys as YAML, without secrets. inlet plan then says that there are no changes.

Drafts of views, revoked keys, and endpoints that are being deleted are left out.`,
)

export const schemaCommand = command(
  'print the JSON Schema of the files for inlet apply',
  async () => (await import('../setup/schema-command.ts')).printSchema,
  { flags: { tests: flag('of files with tests of views') } },
  'Prints the JSON Schema of the files, for editors. inlet export writes it beside them; with a file of your own, begin it with the line:\n\n# yaml-language-server: $schema=setup.schema.json\n\nWith --tests it prints that of files such as orders.test.yaml.',
)

export const testCommand = command(
  'test the views of files on records beside them, without a server',
  async () => (await import('../view-tests/command.ts')).test,
  {
    flags: {
      update: flag('write what came out into the cases that failed, after showing it'),
      junit: optional('file that gets the results as XML in the form of JUnit, for CI', 'FILE'),
      json,
    },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'directory of the set-up', placeholder: 'DIR', default: 'setup' }],
    },
  },
  `Compiles every view of the files, and decides the records of each NAME.test.yaml as delivery would: rows, dropped records and dead letters. Shows what differs, and changes nothing. docs/setup-in-git.md describes the files.

Exit codes: 0 all cases passed, 1 a case failed or the files have problems, 2 wrong usage.`,
)

export const initCommand = command(
  'write a set-up that works, with a view, a test and a workflow for CI',
  async () => (await import('../init/command.ts')).init,
  {
    flags: { region: withDefault('loc', 'region of the endpoint: three lower-case letters', 'REGION', parseRegion) },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'directory of the set-up', placeholder: 'DIR', default: 'setup' }],
    },
  },
  `Writes an endpoint, a view, a test and the JSON Schema into the directory, and a workflow for GitHub Actions into .github/workflows of the working directory. inlet test then passes, and inlet plan shows what would be created.

No file is replaced, and nothing is written into a directory that has a set-up.`,
)

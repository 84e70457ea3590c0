/** `inlet export`: writes what an account has as files. */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { countNoun } from '#lib/count-noun.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { setupJsonSchema } from '#model/setup.ts'
import { ViewName } from '#model/view.ts'
import { openRemote } from '../remote/remote.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'
import { describeOmitted, type Exported, exportAccount } from './export.ts'
import { readAccount } from './kinds/account.ts'
import { setupLimits } from './kinds/limits.ts'
import { printable } from './kinds/problems.ts'
import { isSetupFile } from './kinds/read-files.ts'
import { printSetup } from './yaml.ts'

export type ExportFlags = { readonly file?: string; readonly overwrite: boolean; readonly json: boolean }

const schemaFile = 'setup.schema.json'

export async function exportSetup(this: CliContext, { file: directory, overwrite, json }: ExportFlags): Promise<void> {
  if (json && directory !== undefined) throw new UsageError('--json prints: it excludes -f')
  const { stdout, stderr } = this.process
  if (directory !== undefined && !overwrite) await assertFree(directory)
  const { client } = await openRemote(this, { timeoutMs: setupLimits.callTimeoutMs })
  const account = await readAccount(client)
  const exported = exportAccount(account)
  for (const sentence of describeOmitted(account)) stderr.write(`${printable(sentence)}\n`)
  const present = Object.fromEntries(Object.entries(exported).filter(([, entries]) => entries.length > 0))
  if (json) return printJson(this, present)
  if (directory === undefined) {
    stdout.write(printSetup(present, commentOf('.')))
    return
  }
  const files = filesOf(exported)
  for (const { path, up, content } of files) await write(join(directory, path), printSetup(content, commentOf(up)))
  await write(join(directory, schemaFile), `${JSON.stringify(setupJsonSchema(), undefined, 2)}\n`)
  stdout.write(`Wrote ${countNoun(files.length, 'file')} and ${schemaFile} to ${directory}.\n`)
}

type ExportedFile = { readonly path: string; readonly up: string; readonly content: Partial<Exported> }

/** A file for each kind, and one for each view. */
function filesOf({ views, ...others }: Exported): readonly ExportedFile[] {
  const kinds = Object.entries(others).filter(([, entries]) => entries.length > 0)
  return [
    ...kinds.map(([kind, entries]) => ({ path: `${kind}.yaml`, up: '.', content: { [kind]: entries } })),
    ...views.map((view) => ({ path: `views/${ViewName.parse(view['name'])}.yaml`, up: '..', content: { views: [view] } })),
  ]
}

function commentOf(up: string): string {
  return `yaml-language-server: $schema=${up}/${schemaFile}`
}

/** Files that people wrote are not replaced by accident. */
async function assertFree(directory: string): Promise<void> {
  const names = await readdir(directory, { recursive: true }).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw new UserError(`cannot read ${directory}: ${errorCode(error) ?? error}`)
  })
  const found = names.find(isSetupFile)
  if (found !== undefined)
    throw new UserError(
      `${directory} has files already, such as ${found}: name another directory, or add --overwrite to replace files of the same name`,
    )
}

async function write(path: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  } catch (error) {
    throw new UserError(`cannot write ${path}: ${errorCode(error) ?? error}`)
  }
}

/** Writes what came out into the files of tests. */
import { randomUUID } from 'node:crypto'
import { readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { countNoun } from '#lib/count-noun.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { printable } from '../setup/kinds/problems.ts'
import type { CaseResult } from './run-tests.ts'
import { editCases } from './yaml.ts'

/** Returns a line for each file. Throws a UserError before anything is written if a file cannot be changed. */
export async function updateTests(results: readonly CaseResult[]): Promise<readonly string[]> {
  const failed = results.filter(({ differences }) => differences.length > 0)
  const files = [...Map.groupBy(failed, ({ suite }) => suite.file)].map(([file, own]) => {
    const edits = own.map(({ suite: { document }, testCase: { index }, present }) => ({ document, index, present: present() }))
    return { ...file, count: own.length, edited: tryEdit(file.name, () => editCases(file.text, edits)) }
  })
  const lines: string[] = []
  for (const { name, text, edited, count } of files) {
    try {
      if ((await readFile(name, 'utf8')) !== text) throw new UserError(`${name} has changed meanwhile: run the command again`)
      await replaceFile(name, edited)
    } catch (error) {
      if (error instanceof UserError) throw error
      throw new UserError(`cannot write ${name}: ${errorCode(error) ?? error}`)
    }
    lines.push(`Updated ${countNoun(count, 'case')} in ${printable(name)}.`)
  }
  return lines
}

/** A write that fails leaves the file as it was. A link stays one. */
async function replaceFile(name: string, text: string): Promise<void> {
  const path = await realpath(name)
  const written = `${path}.${randomUUID()}.new`
  try {
    await writeFile(written, text, { mode: (await stat(path)).mode, flush: true })
    await rename(written, path)
  } catch (error) {
    await rm(written, { force: true })
    throw error
  }
}

function tryEdit(name: string, edit: () => string): string {
  try {
    return edit()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UserError(`${name} cannot be updated, because its aliases need what would be replaced: edit it by hand (${reason})`)
  }
}

import { setupJsonSchema } from '#model/setup.ts'
import type { CliContext } from '../context.ts'
import { printJson } from '../print-json.ts'

export async function printSchema(this: CliContext): Promise<void> {
  printJson(this, setupJsonSchema())
}

import { setupJsonSchema } from '#model/setup.ts'
import type { CliContext } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'

export async function printSchema(this: CliContext): Promise<void> {
  printJson(this, setupJsonSchema())
}

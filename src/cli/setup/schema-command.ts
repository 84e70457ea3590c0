import { setupJsonSchema } from '#model/setup.ts'
import { type CliContext, tolerateClosedPipe } from '../context.ts'
import { printJson } from '../print-json.ts'

export async function printSchema(this: CliContext): Promise<void> {
  tolerateClosedPipe(this)
  printJson(this, setupJsonSchema())
}

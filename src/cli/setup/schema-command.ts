import { setupJsonSchema } from '#model/setup.ts'
import { viewTestsJsonSchema } from '#model/view-test.ts'
import type { CliContext } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'

export async function printSchema(this: CliContext, { tests }: { readonly tests: boolean }): Promise<void> {
  printJson(this, tests ? viewTestsJsonSchema() : setupJsonSchema())
}

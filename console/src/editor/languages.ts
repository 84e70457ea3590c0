import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import type { Extension } from '@codemirror/state'

/** The languages of definitions and samples. */
export const languages: Readonly<Record<'yaml' | 'json', Extension>> = { yaml: yaml(), json: json() }

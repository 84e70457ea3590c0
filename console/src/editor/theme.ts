import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

// The tokens follow the theme by themselves, so one theme serves both.
const look = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'transparent', fontSize: 'var(--text-dense)', height: '100%' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: '1.6', overflow: 'auto' },
  '.cm-content': { padding: 'var(--space-2) 0', caretColor: 'var(--ink)' },
  '.cm-gutters': { color: 'var(--soft)', backgroundColor: 'var(--sunken)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--hover) 55%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-content ::selection': { backgroundColor: 'color-mix(in srgb, var(--accent) 30%, transparent)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-tint)', outline: '1px solid var(--accent)' },
  '.cm-tooltip': {
    color: 'var(--ink)',
    backgroundColor: 'var(--surface)',
    border: '1px solid var(--line)',
    borderRadius: 'var(--radius)',
    boxShadow: 'var(--shadow-float)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--font-mono)', maxHeight: '16rem' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '0.25rem var(--space-3)' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { color: 'var(--ink)', backgroundColor: 'var(--hover)' },
  '.cm-completionDetail': { color: 'var(--soft)', fontStyle: 'normal' },
  '.cm-completionInfo': { fontFamily: 'var(--font)', padding: 'var(--space-2) var(--space-3)' },
  '.cm-diagnostic': { fontFamily: 'var(--font)', padding: 'var(--space-2) var(--space-3)' },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--bad)' },
  '.cm-diagnostic-warning': { borderLeft: '3px solid var(--warn)' },
  '.cm-placeholder': { color: 'var(--soft)' },
  '.cm-mergeView': { height: 'auto' },
  '.cm-changedLine': { backgroundColor: 'var(--good-tint) !important' },
  '.cm-deletedChunk, &.cm-merge-a .cm-changedLine': { backgroundColor: 'var(--bad-tint) !important' },
  '.cm-changedText': { background: 'color-mix(in srgb, var(--good) 12%, transparent) !important' },
  '.cm-deletedText, &.cm-merge-a .cm-changedText': { background: 'color-mix(in srgb, var(--bad) 12%, transparent) !important' },
  '.cm-collapsedLines': { color: 'var(--soft)', background: 'var(--sunken)' },
})

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--note)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--calm)' },
  { tag: [tags.keyword, tags.typeName], color: 'var(--calm)' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

/** The console's policy allows style elements only with this value, see `src/control/http/pages/console.ts`. */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? ''

export const editorTheme: Extension = [EditorView.cspNonce.of(nonce), look, syntaxHighlighting(colours)]

/** The text can be reached with the keyboard, and with it what scrolls. Browsers know that of editable text; not all tools that check it do. */
export const reachable = { tabindex: '0' } as const

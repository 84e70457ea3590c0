import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'

/**
 * Replaces a selection with what is typed, in place of the browser.
 *
 * Chromium gives the text that it puts in place of a coloured word the colour of that word, as a style attribute. The policy of the console
 * refuses the attribute, and the browser logs an error. Other typing, and composing, is left to the browser.
 */
export const plainTyping: Extension = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data, isComposing } = event
    if (isComposing || view.composing || inputType !== 'insertText' || data === null) return false
    // CodeMirror reads the selection on each key. Text without a key, such as dictation, can come before the selection's event.
    view.contentDOM.ownerDocument.dispatchEvent(new Event('selectionchange'))
    const { from, to, empty } = view.state.selection.main
    if (empty) return false
    const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true })
    // Closed brackets and the like come first, as for all that is typed.
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert))
    if (!isHandled) view.dispatch(insert())
    event.preventDefault()
    return true
  },
})

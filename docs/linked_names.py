"""Links from code in the text of the guide, such as `Lasso(lam)`, to the reference."""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

PAGES = ("start", "choosing", "faq", "glossary", "from_", "guide/")
NAME = re.compile(r"((?:[a-z]+\.)*)([A-Za-z_]\w*)(?:\(.*\))?", re.DOTALL)
NOT_OURS = {"Path"}  # also the name of something else


class LinkNames(SphinxPostTransform):
    """Make links of inline code that is a public name, or a call of it."""

    default_priority = 700

    def run(self):
        """Replace literals by references to the objects that they name."""
        page = self.env.docname
        if not page.startswith(PAGES):
            return
        targets = public_objects(self.env)
        for literal in list(self.document.findall(nodes.literal)):
            found = NAME.fullmatch(literal.astext())
            if found is None or found[2] not in targets or inside_link(literal):
                continue
            document, anchor = targets.get(found[1] + found[2], targets[found[2]])
            address = self.app.builder.get_relative_uri(page, document) + f"#{anchor}"
            link = nodes.reference("", "", internal=True, refuri=address)
            literal.replace_self(link)
            link += literal


def public_objects(env):
    """Return the page and anchor of each public object, by its short name and with its module."""
    objects = {}
    for name, entry in env.domains.python_domain.objects.items():
        module, _, short = name.rpartition(".")
        public = module.count(".") == (module != "smalto") and entry.objtype in (
            "class",
            "function",
        )
        if not public or short in NOT_OURS:
            continue
        place = entry.docname, entry.node_id
        objects[name] = objects[name.removeprefix("smalto.")] = place
        if short not in objects or module == "smalto":
            objects[short] = place
    return objects


def inside_link(node):
    """Return whether a node is in a link or a title."""
    while node is not None:
        if isinstance(node, nodes.reference | nodes.title):
            return True
        node = node.parent
    return False
